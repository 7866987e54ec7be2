// The data recipe (`data` of a run file).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "trainer/config/fields.h"

namespace farstep {

enum class DataOrder { kShuffled, kSequential };
inline std::span<const std::string_view> enum_names(DataOrder) {
  static constexpr std::array<std::string_view, 2> kNames{"shuffled", "sequential"};
  return kNames;
}

struct DataConfig {
  int64_t sequence_length = 1024;
  DataOrder order = DataOrder::kShuffled;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("sequence_length", sequence_length, "tokens of one sequence", at_least(1));
    visit("order", order, "order of the training windows; sequential is for replay");
  }
};

}  // namespace farstep
