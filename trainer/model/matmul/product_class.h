// Classes of matrix products; the fastest way may differ between them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace farstep {

// Determined by the transposed factors: a linear layer's product, the gradient in its input, the
// gradient in its weight. Small products are those of attention's tiles.
enum class ProductClass : uint8_t { kForward, kInputGradient, kWeightGradient, kSmall };
constexpr int kProductClasses = 4;
inline std::span<const std::string_view> enum_names(ProductClass) {
  static constexpr std::array<std::string_view, kProductClasses> kNames{
      "forward", "input's gradient", "weight's gradient", "small"};
  return kNames;
}

inline ProductClass class_of(int64_t m, int64_t n, int64_t k, bool a_transposed,
                             bool b_transposed) {
  constexpr int64_t kSmallOperations = int64_t{1} << 23;  // 128 x 512 x 128 and less
  if (m * n * k <= kSmallOperations) return ProductClass::kSmall;
  if (a_transposed) return ProductClass::kWeightGradient;
  return b_transposed ? ProductClass::kForward : ProductClass::kInputGradient;
}

}  // namespace farstep
