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
    const auto stream = random_values(rows * width);
    const auto branch = as<BF16>(random_values(rows * width));
    const auto dy = as<BF16>(random_values(rows * width));
    const auto weight = random_values(width);
    const auto n = stream.size();
    std::vector<float> added(n), exact_dy(n);
    for (std::size_t i = 0; i < n; ++i) {
      added[i] = stream[i] + to_float(branch[i]);
      exact_dy[i] = to_float(dy[i]);
    }

    const auto gpu_stream = on_gpu(stream), gpu_weight = on_gpu(weight);
    const auto gpu_branch = on_gpu(branch), gpu_dy = on_gpu(dy);
    DeviceArray<BF16> gpu_y(n);
    DeviceArray<float> gpu_inverse(static_cast<std::size_t>(rows)), gpu_x(n);
    DeviceArray<uint32_t> largest(std::vector<uint32_t>{0, 0});
    std::vector<float> x, inverse(static_cast<std::size_t>(rows));
    for (const bool adds : {false, true}) {
      x = adds ? added : stream;
      std::vector<BF16> y(n);
      rms_norm(x.data(), weight.data(), rows, width, kEpsilon, y.data(), inverse.data(),
               static_cast<float*>(nullptr));
      largest.upload(std::vector<uint32_t>{0, 0});
      const RmsNorm norm{.x = gpu_stream.data(),
                         .branch = adds ? gpu_branch.data() : nullptr,
                         .sum = adds ? gpu_x.data() : nullptr,
                         .weight = gpu_weight.data(),
                         .rows = rows,
                         .width = width,
                         .epsilon = kEpsilon,
                         .y = gpu_y.data(),
                         .inverse_rms = gpu_inverse.data(),
                         .largest = largest.data()};
      require(launch_rms_norm(norm, nullptr));
      CHECK(far_values(gpu_y.download(), y) == 0);
      CHECK(relative_error(gpu_inverse.download(), exact(inverse)) < 1e-6);
      CHECK(largest.download()[0] == largest_of(gpu_y.download()));
    }
    CHECK(gpu_x.download() == added);

    const auto before = random_values(rows * width);
    const auto weight_before = random_values(width);
    DeviceArray<float> parts(static_cast<std::size_t>(rms_norm_parts(rows) * width));
    const auto differentiate = [&](bool add) {
      auto gpu_dx = on_gpu(before), gpu_dweight = on_gpu(weight_before);
      DeviceArray<BF16> gpu_rounded(n);
      largest.upload(std::vector<uint32_t>{0, 0});
      const RmsNormBackward norm{.y_gradient = gpu_dy.data(),
                                 .x = gpu_x.data(),
                                 .weight = gpu_weight.data(),
                                 .inverse_rms = gpu_inverse.data(),
                                 .rows = rows,
                                 .width = width,
                                 .x_gradient = gpu_dx.data(),
                                 .copy = gpu_rounded.data(),
                                 .largest = largest.data() + 1};
      require(launch_rms_norm_backward(norm, gpu_dweight.data(), add, parts.data(), nullptr));
      CHECK(largest.download()[1] == largest_of(gpu_rounded.download()));
      return Gradients{gpu_dx.download(), gpu_dweight.download(), gpu_rounded.download()};
    };
    for (const bool add : {false, true}) {
      Gradients wanted{before, add ? weight_before : std::vector<float>(weight.size()),
                       std::vector<BF16>(n)};
      rms_norm_backward(exact_dy.data(), x.data(), weight.data(), inverse.data(), rows, width,
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
