#include "trainer/kernels/gpu/rms_norm.h"

#include "tests/trainer/kernels/gpu/on_gpu.h"
#include "trainer/kernels/rms_norm.h"

namespace farstep {

namespace {

constexpr float kEpsilon = 1e-5F;

struct Gradients {
  std::vector<float> dx, dweight;
  std::vector<BF16> copy;
};

}  // namespace

TEST_CASE("a GPU's RMSNorm and its gradients are a CPU's", "[gpu]") {
  if (lacks_gpu()) return;
  for (const auto& [rows, width] : std::vector<std::pair<int64_t, int64_t>>{{1, 1},
                                                                            {3, 3},
                                                                            {2, 255},
                                                                            {5, 256},
                                                                            {3, 1028},
                                                                            {2, 4097},
                                                                            {2, 12288},
                                                                            {1, 13000},
                                                                            {600, 12}}) {
    const auto x = random_values(rows * width), dy = random_values(rows * width);
    const auto weight = random_values(width);
    const auto n = x.size();
    std::vector<BF16> y(n);
    std::vector<float> inverse(static_cast<std::size_t>(rows)), copy(n);
    rms_norm(x.data(), weight.data(), rows, width, kEpsilon, y.data(), inverse.data(), copy.data());

    const auto gpu_x = on_gpu(x), gpu_dy = on_gpu(dy), gpu_weight = on_gpu(weight);
    DeviceArray<BF16> gpu_y(n);
    DeviceArray<float> gpu_inverse(inverse.size()), gpu_copy(n);
    for (const bool copies : {false, true}) {
      require(launch_rms_norm(gpu_x.data(), gpu_weight.data(), rows, width, kEpsilon, gpu_y.data(),
                              gpu_inverse.data(), copies ? gpu_copy.data() : nullptr, nullptr));
      CHECK(relative_error(gpu_y.download(), exact(y)) < kTolerance<BF16>);
      CHECK(relative_error(gpu_inverse.download(), exact(inverse)) < 1e-6);
    }
    CHECK(gpu_copy.download() == x);

    const auto before = random_values(rows * width);
    const auto weight_before = random_values(width);
    const RmsNormBackward norm{gpu_dy.data(),      gpu_x.data(), gpu_weight.data(),
                               gpu_inverse.data(), rows,         width};
    DeviceArray<float> parts(static_cast<std::size_t>(rms_norm_parts(rows) * width));
    const auto differentiate = [&](bool add) {
      auto gpu_dx = on_gpu(before), gpu_dweight = on_gpu(weight_before);
      DeviceArray<BF16> gpu_rounded(n);
      require(launch_rms_norm_backward(norm, gpu_dx.data(), gpu_rounded.data(), gpu_dweight.data(),
                                       add, parts.data(), nullptr));
      return Gradients{gpu_dx.download(), gpu_dweight.download(), gpu_rounded.download()};
    };
    for (const bool add : {false, true}) {
      Gradients wanted{before, add ? weight_before : std::vector<float>(weight.size()),
                       std::vector<BF16>(n)};
      rms_norm_backward(dy.data(), x.data(), weight.data(), inverse.data(), rows, width,
                        wanted.dx.data(), wanted.dweight.data(), wanted.copy.data());
      const auto found = differentiate(add), again = differentiate(add);
      // With one element alone y is a sign: its gradient in x is a difference of equal numbers.
      if (width > 1) CHECK(relative_error(found.dx, exact(wanted.dx), 1) < 1e-5);
      CHECK(relative_error(found.dweight, exact(wanted.dweight), 1) < 1e-5);
      CHECK(equal_bits(found.copy, as<BF16>(found.dx)));
      CHECK(equal_bits(found.dx, again.dx));
      CHECK(equal_bits(found.dweight, again.dweight));
    }
  }
}

}  // namespace farstep
