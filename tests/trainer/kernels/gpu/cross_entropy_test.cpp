#include "trainer/kernels/gpu/cross_entropy.h"

#include <limits>

#include "tests/trainer/kernels/gpu/on_gpu.h"
#include "trainer/kernels/cross_entropy.h"

namespace farstep {

TEST_CASE("a GPU's cross-entropy and its gradient are a CPU's", "[gpu]") {
  if (lacks_gpu()) return;
  // Up to 8192 logits one by one and 32768 in packs are read once.
  for (const int64_t vocabulary : {1, 3, 255, 4096, 4097, 9001, 32000, 32768, 33000, 128256}) {
    for (const int64_t rows : {0, 1, 4}) {
      const double spread = GENERATE(0.0, 0.1, 3.0, 60.0);
      const float scale = 0.37F;
      const auto logits = random_values(rows * vocabulary, spread);
      const auto targets = random_tokens(rows, vocabulary);
      auto overwritten = logits;
      std::vector<float> losses(static_cast<std::size_t>(rows));
      std::vector<BF16> gradient(logits.size());
      cross_entropy(overwritten.data(), targets.data(), rows, vocabulary, scale, losses.data(),
                    gradient.data());

      const auto gpu_logits = on_gpu(logits);
      const auto gpu_targets = on_gpu(targets);
      DeviceArray<float> gpu_losses(losses.size()), alone(losses.size());
      DeviceArray<BF16> gpu_gradient(gradient.size());
      require(launch_cross_entropy(gpu_logits.data(), gpu_targets.data(), rows, vocabulary, scale,
                                   gpu_losses.data(), gpu_gradient.data(), nullptr));
      require(launch_cross_entropy(gpu_logits.data(), gpu_targets.data(), rows, vocabulary, scale,
                                   alone.data(), nullptr, nullptr));
      CHECK(relative_error(gpu_losses.download(), exact(losses), 1) < 2e-6 * (1 + spread));
      CHECK(far_values(gpu_gradient.download(), gradient, 1e-5 + 1e-6 * spread, scale) == 0);
      CHECK(equal_bits(alone.download(), gpu_losses.download()));
    }
  }
}

TEST_CASE("a GPU's loss is not finite where a logit is not", "[gpu]") {
  if (lacks_gpu()) return;
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    for (const int64_t vocabulary : {41, 40'000}) {
      for (const int64_t place : {int64_t{20}, vocabulary - 1}) {
        auto logits = random_values(vocabulary);
        logits[static_cast<std::size_t>(place)] = bad;
        const auto gpu_logits = on_gpu(logits);
        const auto target = on_gpu(std::vector<int64_t>{3});
        DeviceArray<float> loss(1);
        require(launch_cross_entropy(gpu_logits.data(), target.data(), 1, vocabulary, 1,
                                     loss.data(), nullptr, nullptr));
        CHECK(!std::isfinite(loss.download()[0]));
      }
    }
  }
}

}  // namespace farstep
