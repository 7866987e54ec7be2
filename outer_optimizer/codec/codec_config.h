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
  std::optional<bool> error_feedback = {};

  // Whether what the codec leaves out of a delta is added to the next one. By default not with
  // int2 and top_k: local steps learn again what was left out, so adding it counts it twice
  // (docs/results/few_bits.md).
  bool feeds_back() const {
    return error_feedback.value_or(kind != CodecKind::kInt2 && kind != CodecKind::kTopK);
  }

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("kind", kind, "how the deltas and their mean travel");
    visit("block", block, "values that share a scale; null is the codec's own choice",
          in_range(1, 65536));
    visit("top_fraction", top_fraction, "share of the values that top_k sends",
          in_range(0.0001, 1));
    visit("error_feedback", error_feedback,
          "what a lossy codec left out of a delta is added to the next one; null: not if the codec "
          "is int2 or top_k");
  }
};

}  // namespace farstep::outer_optimizer
