// The interval, the size and the consequences of validations (`evaluate` of a run file).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "trainer/config/fields.h"

namespace farstep {

// What a validation loss that has risen far leads to.
enum class OnRise { kWarn, kStop, kGoBack };
inline std::span<const std::string_view> enum_names(OnRise) {
  static constexpr std::array<std::string_view, 3> kNames{"warn", "stop", "go_back"};
  return kNames;
}

struct EvaluateConfig {
  std::optional<int64_t> every_rounds;
  int64_t windows = 64;
  OnRise on_rise = OnRise::kWarn;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("every_rounds", every_rounds,
          "rounds between two validations; 0 never; null: as often as it costs 1 % of the training "
          "at most, and before the first round and after the last",
          at_least(0));
    visit("windows", windows,
          "validation examples, windows of tokens or images, spread over the set; 0 is all",
          at_least(0));
    visit("on_rise", on_rise,
          "if the loss rises 0.5 or six standard deviations above the best of the last eight: "
          "warn; stop with exit code 5; go_back: train on from the weights of the checkpoint "
          "before, with other data, and stop if it rises again within eight validations");
  }
};

}  // namespace farstep
