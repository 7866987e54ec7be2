// Kernels at the end of arrays of more than 2^32 values, on a GPU that the CPU emulates: their last
// blocks alone, in memory of which only what these touch is there.
#include <algorithm>

#include "tests/trainer/kernels/gpu/far_end.h"
#include "tests/trainer/kernels/gpu/on_gpu.h"
#include "trainer/kernels/gpu/fp8.h"
#include "trainer/kernels/gpu/rms_norm.h"
#include "trainer/kernels/gpu/swiglu.h"

namespace farstep {

namespace {

// Launches the last block alone.
template <typename Launch>
void launch_last(const Launch& launch) {
  const LastBlocks last(1);
  require(launch());
}

constexpr int64_t kManyRows = int64_t{1} << 20, kWidth = 4104;

}  // namespace

TEST_CASE("a norm's last row of four thousand million values is that of one row") {
  const auto x = random_values(kWidth), weight = random_values(kWidth);
  const auto branch = as<BF16>(random_values(kWidth)), dy = as<BF16>(random_values(kWidth));
  SparseArray<float> all_x(kManyRows * kWidth), all_sums(kManyRows * kWidth),
      all_inverse(kManyRows), all_dx(kManyRows * kWidth);
  SparseArray<BF16> all_branches(kManyRows * kWidth), all_y(kManyRows * kWidth),
      all_dy(kManyRows * kWidth);
  all_x.end_with(x);
  all_branches.end_with(branch);
  all_dy.end_with(dy);
  RmsNorm norm{.x = all_x.data(),
               .branch = all_branches.data(),
               .sum = all_sums.data(),
               .weight = weight.data(),
               .rows = kManyRows,
               .width = kWidth,
               .epsilon = 1e-5F,
               .y = all_y.data(),
               .inverse_rms = all_inverse.data()};
  launch_last([&] { return launch_rms_norm(norm, nullptr); });

  std::vector<float> sum(x.size()), dx(x.size()), inverse(1), dweight(x.size());
  std::vector<BF16> y(x.size()), copy(x.size());
  norm.x = x.data();
  norm.branch = branch.data();
  norm.sum = sum.data();
  norm.rows = 1;
  norm.y = y.data();
  norm.inverse_rms = inverse.data();
  require(launch_rms_norm(norm, nullptr));
  CHECK(equal_bits(all_sums.last(sum.size()), sum));
  CHECK(equal_bits(all_y.last(y.size()), y));
  CHECK(all_inverse.last(1) == inverse);

  RmsNormBackward backward{.y_gradient = all_dy.data(),
                           .x = all_sums.data(),
                           .weight = weight.data(),
                           .inverse_rms = all_inverse.data(),
                           .rows = kManyRows,
                           .width = kWidth,
                           .x_gradient = all_dx.data(),
                           .copy = all_y.data()};
  SparseArray<float> parts(rms_norm_parts(kManyRows) * kWidth);
  launch_last([&] {
    return launch_rms_norm_backward(backward, dweight.data(), false, parts.data(), nullptr);
  });
  backward.y_gradient = dy.data();
  backward.x = sum.data();
  backward.inverse_rms = inverse.data();
  backward.rows = 1;
  backward.x_gradient = dx.data();
  backward.copy = copy.data();
  require(launch_rms_norm_backward(backward, dweight.data(), false, parts.data(), nullptr));
  CHECK(equal_bits(all_dx.last(dx.size()), dx));
  CHECK(equal_bits(all_y.last(copy.size()), copy));
}

TEST_CASE("SwiGLU's last row of eight thousand million values is that of one row") {
  const auto gate_up = as<BF16>(random_values(2 * kWidth)), dout = as<BF16>(random_values(kWidth));
  SparseArray<BF16> all_gates(2 * kManyRows * kWidth), all_outs(kManyRows * kWidth);
  all_gates.end_with(gate_up);
  launch_last([&] {
    return launch_swiglu(all_gates.data(), kManyRows, kWidth, all_outs.data(), nullptr, nullptr);
  });
  std::vector<BF16> out(dout.size()), gradient(gate_up.size());
  require(launch_swiglu(gate_up.data(), 1, kWidth, out.data(), nullptr, nullptr));
  CHECK(equal_bits(all_outs.last(out.size()), out));

  all_outs.end_with(dout);
  SwigluBackward backward{.out_gradient = all_outs.data(),
                          .gate_up = all_gates.data(),
                          .rows = kManyRows,
                          .width = kWidth,
                          .gate_up_gradient = all_gates.data()};
  launch_last([&] { return launch_swiglu_backward(backward, nullptr); });
  backward.out_gradient = dout.data();
  backward.gate_up = gate_up.data();
  backward.rows = 1;
  backward.gate_up_gradient = gradient.data();
  require(launch_swiglu_backward(backward, nullptr));
  CHECK(equal_bits(all_gates.last(gradient.size()), gradient));
}

TEST_CASE("the last tile of four thousand million values becomes FP8 as a tile alone") {
  constexpr int64_t kFew = 64, kMany = int64_t{1} << 26;
  const auto tile = as<BF16>(random_values(kFew * kFew));
  SparseArray<BF16> x(kFew * kMany);
  SparseArray<uint8_t> codes(kFew * kMany), transposed(kFew * kMany);
  for (int64_t row = 0; row < kFew; ++row) {
    std::copy_n(tile.data() + row * kFew, kFew, x.data() + (row + 1) * kMany - kFew);
  }
  const std::vector<uint32_t> largest{largest_of(tile)};
  std::vector<float> inverse(1);
  launch_last([&] {
    return launch_to_fp8(Fp8Format::kE4M3, x.data(), kFew, kMany, largest.data(),
                         {codes.data(), transposed.data(), inverse.data()}, nullptr);
  });
  std::vector<uint8_t> wanted(tile.size()), wanted_transposed(tile.size());
  require(launch_to_fp8(Fp8Format::kE4M3, tile.data(), kFew, kFew, largest.data(),
                        {wanted.data(), wanted_transposed.data(), inverse.data()}, nullptr));
  CHECK(equal_bits(transposed.last(tile.size()), wanted_transposed));
  for (int64_t row = 0; row < kFew; ++row) {
    CHECK(std::equal(wanted.data() + row * kFew, wanted.data() + (row + 1) * kFew,
                     codes.data() + (row + 1) * kMany - kFew));
  }
}

}  // namespace farstep
