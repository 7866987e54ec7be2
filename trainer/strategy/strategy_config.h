// The strategy of a run (`strategy` of a run file).
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "trainer/config/fields.h"

namespace farstep {

enum class StrategyKind { kLowCommunication, kEagerUpdates };
inline std::span<const std::string_view> enum_names(StrategyKind) {
  static constexpr std::array<std::string_view, 2> kNames{"low_communication", "eager_updates"};
  return kNames;
}

struct StrategyConfig {
  StrategyKind kind = StrategyKind::kLowCommunication;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("kind", kind,
          "how the replicas stay together. low_communication: many local steps, then an outer step "
          "on the mean delta, in fragments and hidden behind training if sync says so; "
          "eager_updates: the same, but a round's whole exchange is hidden behind the next round, "
          "and a site counts its own delta at once (needs one fragment, no delay_steps, alpha 0)");
  }
};

}  // namespace farstep
