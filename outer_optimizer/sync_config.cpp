#include "outer_optimizer/sync_config.h"

#include <fmt/format.h>

#include <algorithm>

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

}  // namespace farstep
