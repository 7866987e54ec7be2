#include "trainer/inner/share_gradients.h"

#include <algorithm>
#include <chrono>

#include "trainer/base/error.h"
#include "trainer/base/out_of_memory.h"

namespace farstep {

namespace {

using SteadyClock = std::chrono::steady_clock;

double seconds_since(SteadyClock::time_point began) {
  return std::chrono::duration<double>(SteadyClock::now() - began).count();
}

}  // namespace

ShareResult share_gradients(TrainableModel& model, const TokenBatch& batch, const Share& share,
                            const std::function<void(int64_t, int64_t)>& ready) {
  const auto began = SteadyClock::now();
  double seconds_aside = 0;
  const auto timed_ready = [&](int64_t begin, int64_t end) {
    const auto told = SteadyClock::now();
    ready(begin, end);
    seconds_aside += seconds_since(told);
  };
  auto gradients = model.parameters().gradients();
  if (share.sequences == 0) {
    gradients.zero_();
    if (ready) timed_ready(0, gradients.numel());
  }
  auto loss = at::zeros({}, gradients.options());
  const double scale = 1.0 / static_cast<double>(batch.sequences * batch.length);
  for (int64_t done = 0; done < share.sequences; done += share.micro_batch) {
    const int64_t count = std::min(share.micro_batch, share.sequences - done);
    const auto tokens = token_tensor(batch, share.first + done, count, gradients.device());
    GradientPass pass{.scale = scale, .add = done > 0};
    if (ready && done + count == share.sequences) pass.ready = timed_ready;
    loss += model.backpropagate(tokens, pass);
  }
  ShareResult result{.loss = loss.item<double>()};  // waits for the device
  result.seconds = seconds_since(began) - seconds_aside;
  return result;
}

int64_t largest_micro_batch(TrainableModel& model, const TokenBatch& batch, int64_t too_large) {
  int64_t fitting = 0;
  while (too_large - fitting > 1) {
    const int64_t tried = fitting + (too_large - fitting) / 2;
    try {
      share_gradients(model, batch, {0, tried, tried});
      fitting = tried;
    } catch (const std::exception& error) {
      if (!is_out_of_memory(error)) throw;
      too_large = tried;
    }
  }
  return fitting;
}

at::Tensor token_tensor(const TokenBatch& batch, int64_t first, int64_t count, at::Device device) {
  const int64_t row = batch.length + 1;
  FARSTEP_CHECK(static_cast<int64_t>(batch.tokens.size()) == batch.sequences * row,
                "{} token ids for {} sequences of {}", batch.tokens.size(), batch.sequences, row);
  FARSTEP_CHECK(first >= 0 && count > 0 && first + count <= batch.sequences,
                "sequences {} to {} of {}", first, first + count, batch.sequences);
  // From pinned memory the GPU copies while the host goes on; LibTorch keeps it until then.
  const bool to_gpu = device.is_cuda();
  auto tokens = at::empty({count, row}, at::TensorOptions(at::kLong).pinned_memory(to_gpu));
  std::copy_n(batch.tokens.data() + first * row, count * row, tokens.mutable_data_ptr<int64_t>());
  return tokens.to(at::TensorOptions(device), /*non_blocking=*/to_gpu);
}

}  // namespace farstep
