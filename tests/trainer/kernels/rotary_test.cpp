#include "trainer/kernels/rotary.h"

#include "tests/support/catch.h"
#include "tests/support/every_instruction_set.h"
#include "tests/trainer/kernels/random_values.h"

namespace farstep {

TEMPLATE_TEST_CASE("heads are rotated by the angle of their position and values are not", "", float,
                   BF16) {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  for (const int64_t half : {1, 3, 16, 33}) {
    const int64_t length = 5;
    const int64_t rows = 2 * length;
    std::vector<float> cosines, sines;
    std::vector<double> angles;
    for (int64_t i = 0; i < length * half; ++i) {
      angles.push_back(0.37 * static_cast<double>(i));
      cosines.push_back(static_cast<float>(std::cos(angles.back())));
      sines.push_back(static_cast<float>(std::sin(angles.back())));
    }
    const RotaryRows shape{.sequence_length = length,
                           .rotated_heads = 3,
                           .other_heads = 2,
                           .head_size = 2 * half,
                           .cosines = cosines.data(),
                           .sines = sines.data()};
    const auto x = random_values(rows * shape.width());
    std::vector<double> wanted(x.begin(), x.end());
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t head = 0; head < shape.rotated_heads; ++head) {
        for (int64_t i = 0; i < half; ++i) {
          const auto at = static_cast<std::size_t>(row * shape.width() + head * 2 * half + i);
          const auto partner = at + static_cast<std::size_t>(half);
          const double angle = angles[static_cast<std::size_t>(row % length * half + i)];
          wanted[at] = x[at] * std::cos(angle) - x[partner] * std::sin(angle);
          wanted[partner] = x[partner] * std::cos(angle) + x[at] * std::sin(angle);
        }
      }
    }
    std::vector<TestType> y(x.size());
    rotate(shape, Rotation::kForward, x.data(), 0, 4, y.data());
    rotate(shape, Rotation::kForward, x.data(), 4, rows, y.data());
    CHECK(relative_error(y, wanted) < kTolerance<TestType>);

    auto in_place = x;
    rotate(shape, Rotation::kForward, in_place.data(), 0, rows, in_place.data());
    CHECK(relative_error(in_place, wanted) < kTolerance<float>);
    std::vector<TestType> back(x.size());
    rotate(shape, Rotation::kBackward, in_place.data(), 0, rows, back.data());
    CHECK(relative_error(back, {x.begin(), x.end()}) < kTolerance<TestType>);
  }
}

}  // namespace farstep
