#include "outer_optimizer/sync_config.h"

#include <fmt/format.h>

#include <algorithm>

namespace farstep {

void SyncConfig::validate(const JsonPath& path, int64_t base_steps) const {
  const int64_t steps = std::max<int64_t>(1, delay_steps);  // of a fragment
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
  if (codec.kind != CodecKind::kFp32 && !traits.takes_codecs) {
    path.member("codec").member("kind").fail(
        fmt::format("the exchange {} adds up fp32 only", name));
  }
  if (!servers.empty() && traits.servers == ServersUse::kNone) {
    path.member("servers").fail(fmt::format("the exchange {} has no servers", name));
  }
}

}  // namespace farstep
