// How values travel: which codec, and its settings (`sync.codec` of a run file).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "trainer/config/fields.h"

namespace farstep::outer_optimizer {

enum class CodecKind { kFp32, kFp16, kBf16, kInt8, kInt4, kInt2, kTopK };
inline std::span<const std::string_view> enum_names(CodecKind) {
  static constexpr std::array<std::string_view, 7> kNames{"fp32", "fp16", "bf16", "int8",
                                                          "int4", "int2", "top_k"};
  return kNames;
}

struct CodecConfig {
  CodecKind kind = CodecKind::kFp32;
  std::optional<int64_t> block = {};
  double top_fraction = 0.05;
  bool error_feedback = true;
  std::optional<int64_t> fine_rounds = {};
  CodecKind fine_kind = CodecKind::kInt8;

  // Returns how many of a run's last rounds use fine_kind.
  int64_t num_fine_rounds() const {
    // Training makes up for what a coarse codec loses, but not after the last rounds. Two fine
    // rounds cost 0.016 nats, four 0.005 (docs/results.md, How a run ends).
    const bool is_coarse = kind == CodecKind::kInt2 || kind == CodecKind::kTopK;
    return fine_rounds.value_or(is_coarse ? 4 : 0);
  }
  // Whether the round, of a run of `rounds`, is one of them.
  bool is_fine(int64_t round, int64_t rounds) const { return round > rounds - num_fine_rounds(); }

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("kind", kind, "how the deltas and their mean travel");
    visit("block", block, "values that share a scale; null is the codec's own choice",
          in_range(1, 65536));
    visit("top_fraction", top_fraction, "share of the values that top_k sends",
          in_range(0.0001, 1));
    visit("error_feedback", error_feedback,
          "what a lossy codec left out of a delta is added to the next one");
    visit("fine_rounds", fine_rounds,
          "last rounds of the run that use fine_kind; null: 4 with int2 and top_k, else 0",
          at_least(0));
    visit("fine_kind", fine_kind, "how values travel in the fine rounds");
  }
};

}  // namespace farstep::outer_optimizer
