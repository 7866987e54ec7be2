#include "trainer/kernels/gpu/swiglu.h"

#include "tests/trainer/kernels/gpu/on_gpu.h"
#include "trainer/kernels/swiglu.h"

namespace farstep {

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
      require(launch_swiglu(gpu_gate_up.data(), rows, width, gpu_out.data(), nullptr));
      CHECK(relative_error(gpu_out.download(), exact(out)) < kTolerance<BF16>);
      auto in_place = on_gpu(d_out);
      require(launch_swiglu_backward(in_place.data(), gpu_gate_up.data(), rows, width,
                                     gpu_gradient.data(), in_place.data(), nullptr));
      CHECK(relative_error(in_place.download(), exact(out)) < kTolerance<BF16>);
      CHECK(relative_error(gpu_gradient.download(), exact(gradient)) < kTolerance<BF16>);
    }
  }
}

}  // namespace farstep
