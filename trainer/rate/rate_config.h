// Settings of the inner learning rate (in `inner` of a run file).
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "trainer/config/fields.h"

namespace farstep {

enum class RateShape { kCosine, kWsd };
inline std::span<const std::string_view> enum_names(RateShape) {
  static constexpr std::array<std::string_view, 2> kNames{"cosine", "wsd"};
  return kNames;
}

enum class RateExtension { kHold, kRestart };
inline std::span<const std::string_view> enum_names(RateExtension) {
  static constexpr std::array<std::string_view, 2> kNames{"hold", "restart"};
  return kNames;
}

struct RateConfig {
  double peak_learning_rate = 4e-4;
  RateShape schedule = RateShape::kCosine;
  double warmup_fraction = 0.05;
  std::optional<double> warmup_rounds = {};
  double decay_fraction = 0.2;
  double final_fraction = 0.1;
  RateExtension extension = RateExtension::kHold;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("peak_learning_rate", peak_learning_rate, "learning rate at the end of warm-up",
          at_least(0));
    visit(
        "schedule", schedule,
        "what follows the warm-up. cosine: half a cosine down; wsd: the peak, then a decay by 1 - "
        "sqrt over decay_fraction");
    visit("warmup_fraction", warmup_fraction, "share of the run with rising learning rate",
          in_range(0, 0.999));
    visit("warmup_rounds", warmup_rounds,
          "the warm-up in rounds instead, so that it does not grow with the run; null: "
          "warmup_fraction",
          at_least(0));
    visit("decay_fraction", decay_fraction, "share of the run that wsd decays", in_range(0.001, 1));
    visit("final_fraction", final_fraction, "learning rate at the end, as a share of the peak",
          in_range(0, 1));
    visit("extension", extension,
          "of a run whose rate has fallen, if outer.rounds is raised. hold: the rate follows its "
          "schedule, and then stays; restart: it rises to the peak again, by a new warm-up, and "
          "falls until the new end");
  }
};

}  // namespace farstep
