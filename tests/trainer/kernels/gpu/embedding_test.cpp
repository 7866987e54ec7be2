#include "trainer/kernels/gpu/embedding.h"

#include "tests/trainer/kernels/gpu/on_gpu.h"
#include "trainer/kernels/embedding.h"

namespace farstep {

TEST_CASE("a GPU embeds tokens and adds up their gradients as a CPU does", "[gpu]") {
  if (lacks_gpu()) return;
  for (const int64_t width : {1, 8, 255, 1028}) {
    for (const int64_t rows : {0, 1, 50, 300}) {
      for (const int64_t vocabulary : {1, 7, 500}) {
        const auto tokens = random_tokens(rows, vocabulary);
        const auto table = random_values(vocabulary * width);
        const auto dx = random_values(rows * width);
        std::vector<float> x(dx.size());
        auto gradient = table;
        embed(table.data(), tokens.data(), rows, width, x.data());
        embed_backward(dx.data(), tokens.data(), rows, width, 0, width, gradient.data());

        const auto gpu_tokens = on_gpu(tokens);
        const auto gpu_table = on_gpu(table), gpu_dx = on_gpu(dx);
        DeviceArray<float> gpu_x(x.size());
        require(
            launch_embed(gpu_table.data(), gpu_tokens.data(), rows, width, gpu_x.data(), nullptr));
        CHECK(gpu_x.download() == x);
        auto gpu_gradient = on_gpu(table);
        DeviceArray<int32_t> order(tokens.size());
        require(launch_embed_backward(gpu_dx.data(), gpu_tokens.data(), rows, width, order.data(),
                                      gpu_gradient.data(), nullptr));
        // The order of the additions is the same.
        CHECK(gpu_gradient.download() == gradient);
      }
    }
  }
}

}  // namespace farstep
