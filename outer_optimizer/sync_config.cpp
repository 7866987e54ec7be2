#include "outer_optimizer/sync_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "outer_optimizer/schedule/fragment_schedule.h"

namespace farstep {

void SyncConfig::validate(const JsonPlace& place, int64_t base_steps) const {
  const int64_t steps = std::max<int64_t>(1, delay_steps);  // of a fragment
  if (fragments * steps > base_steps) {
    place.member(delay_steps > 1 ? "delay_steps" : "fragments")
        .fail(fmt::format("{} fragments, each under way for {} steps, do not fit into a round of "
                          "plan.base_steps = {}",
                          fragments, steps, base_steps));
  }
  if (shares == SharesRule::kBandwidth && exchange != ExchangeKind::kDirect) {
    place.member("shares").fail("only the direct exchange has shares by bandwidth");
  }
  if (exchange != ExchangeKind::kRing) return;
  if (codec.kind != CodecKind::kFp32) {
    place.member("codec").member("kind").fail("the ring adds up fp32 only");
  }
  if (!servers.empty()) place.member("servers").fail("the ring has no servers");
}

void SyncConfig::require_room(const JsonPlace& steps, int64_t local_steps,
                              int64_t base_steps) const {
  const FragmentSchedule schedule(local_steps, fragments, delay_steps, base_steps);
  const int64_t each = std::max<int64_t>(1, schedule.delay_steps());
  if (fragments * each <= local_steps) return;
  steps.fail(fmt::format(
      "is {}; must be at least {}, for {} fragments that are under way for {} steps each",
      local_steps, fragments * each, fragments, each));
}

}  // namespace farstep
