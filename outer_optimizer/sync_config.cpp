#include "outer_optimizer/sync_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "outer_optimizer/codec/make_codec.h"
#include "outer_optimizer/schedule/fragment_schedule.h"

namespace farstep::outer_optimizer {

void SyncConfig::validate(const JsonPath& path, int64_t base_steps) const {
  const int64_t steps = std::max<int64_t>(1, delay_steps);  // of a fragment
  // Only one fragment is under way at a time, so their steps add up.
  if (fragments * steps > base_steps) {
    path.member(delay_steps > 1 ? "delay_steps" : "fragments")
        .fail(fmt::format("{} fragments, each under way for {} steps, do not fit into a round of "
                          "plan.base_steps = {}",
                          fragments, steps, base_steps));
  }
  const auto& traits = traits_of(exchange);
  const auto name = name_of(exchange);
  if (shares == SharesRule::kBandwidth && !traits.takes_shares) {
    path.member("shares").fail(fmt::format("the exchange {} has no shares by bandwidth", name));
  }
  const auto refuse_lossy = [&](const CodecConfig& config, const JsonPath& kind) {
    if (traits.takes_codecs || !make_codec(config)->is_lossy()) return;
    kind.fail(fmt::format("the exchange {} adds up fp32 only", name));
  };
  refuse_lossy(codec, path.member("codec").member("kind"));
  if (fine_rounds > 0) refuse_lossy({.kind = fine_codec}, path.member("fine_codec"));
  if (!servers.empty() && traits.servers == ServersUse::kNone) {
    path.member("servers").fail(fmt::format("the exchange {} has no servers", name));
  }
}

void SyncConfig::require_room(const JsonPath& steps, int64_t local_steps,
                              int64_t base_steps) const {
  // A site with more or fewer steps than base_steps has a longer or shorter delay.
  const FragmentSchedule schedule(local_steps, fragments, delay_steps, base_steps);
  const int64_t each = std::max<int64_t>(1, schedule.delay_steps());
  if (fragments * each <= local_steps) return;
  steps.fail(fmt::format(
      "is {}; must be at least {}, for {} fragments that are under way for {} steps each",
      local_steps, fragments * each, fragments, each));
}

}  // namespace farstep::outer_optimizer
