#include "trainer/kernels/gpu/swiglu.h"

#include "tests/trainer/kernels/gpu/on_gpu.h"
#include "trainer/kernels/swiglu.h"

namespace farstep {

namespace {

// A processor's exponential ends at e^87, so its sigmoid is 1e-38 where a GPU's is 0. Times gates
// and ups of a thousand that is below 1e-25.
constexpr double kSlack = 1e-5, kLeast = 1e-20;

}  // namespace

TEST_CASE("a GPU's SwiGLU and its gradients are a CPU's", "[gpu]") {
  if (lacks_gpu()) return;
  for (const int64_t width : {1, 3, 8, 255, 688, 4097}) {
    for (const int64_t rows : {0, 1, 5}) {
      const double scale = GENERATE(0.1, 3.0, 300.0);
      const auto gate_up = as<BF16>(random_values(rows * 2 * width, scale));
      const auto d_out = as<BF16>(random_values(rows * width));
      std::vector<float> exact_d_out;
      for (const BF16 value : d_out) exact_d_out.push_back(to_float(value));
      std::vector<BF16> out(d_out.size()), gradient(gate_up.size());
      swiglu_backward(exact_d_out.data(), gate_up.data(), rows, width, gradient.data(), out.data());

      const auto gpu_gate_up = on_gpu(gate_up);
      DeviceArray<BF16> gpu_out(out.size()), gpu_gradient(gradient.size());
      DeviceArray<uint32_t> largest(std::vector<uint32_t>{0, 0});
      require(
          launch_swiglu(gpu_gate_up.data(), rows, width, gpu_out.data(), largest.data(), nullptr));
      CHECK(far_values(gpu_out.download(), out, kSlack, kLeast) == 0);
      const auto gpu_d_out = on_gpu(d_out);
      require(launch_swiglu_backward({.out_gradient = gpu_d_out.data(),
                                      .gate_up = gpu_gate_up.data(),
                                      .rows = rows,
                                      .width = width,
                                      .gate_up_gradient = gpu_gradient.data(),
                                      .largest = largest.data() + 1},
                                     nullptr));
      CHECK(far_values(gpu_gradient.download(), gradient, kSlack, kLeast) == 0);
      CHECK(largest.download() == std::vector<uint32_t>{largest_of(gpu_out.download()),
                                                        largest_of(gpu_gradient.download())});
    }
  }
}

}  // namespace farstep
