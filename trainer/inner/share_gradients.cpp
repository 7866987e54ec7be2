// A device's share of the step, in micro-batches that add to the same gradients. The divisor is the
// whole batch's, so shares and micro-batches add up to the mean without another pass.
#include "trainer/inner/share_gradients.h"

#include <algorithm>
#include <chrono>

#include "trainer/base/memory/out_of_memory.h"
#include "trainer/base/stopped.h"
#include "trainer/model/batch_tensors.h"

namespace farstep {

namespace {

using SteadyClock = std::chrono::steady_clock;

double seconds_since(SteadyClock::time_point began) {
  return std::chrono::duration<double>(SteadyClock::now() - began).count();
}

}  // namespace

ShareResult share_gradients(TrainableModel& model, const BatchView& batch, const Share& share,
                            const std::function<void(int64_t, int64_t)>& ready,
                            const std::stop_token& stop) {
  const auto began = SteadyClock::now();
  // Time in `ready` is spent on other devices' sums as well, so it says nothing of this device's
  // speed.
  double seconds_aside = 0;
  const auto timed_ready = [&](int64_t begin, int64_t end) {
    const auto told = SteadyClock::now();
    ready(begin, end);
    seconds_aside += seconds_since(told);
  };
  auto gradients = model.parameters().gradients();
  if (share.examples == 0) {
    gradients.zero_();
    if (ready) timed_ready(0, gradients.numel());
  }
  // Added up on the device, so that the host waits for it once.
  auto loss = at::zeros({}, gradients.options());
  // Of all targets of the batch, so that parts of micro-batches and devices add up to the mean.
  const double scale = 1.0 / static_cast<double>(batch.targets);
  for (int64_t done = 0; done < share.examples; done += share.micro_batch) {
    throw_if_stopped(stop);
    const int64_t count = std::min(share.micro_batch, share.examples - done);
    const auto tensors = batch_tensors(batch, share.first + done, count, gradients.device());
    GradientPass pass{.scale = scale, .add = done > 0, .ready = {}, .stop = stop};
    // In earlier micro-batches no gradient is final.
    if (ready && done + count == share.examples) pass.ready = timed_ready;
    loss += model.backpropagate(tensors, pass);
  }
  ShareResult result{.loss = loss.item<double>()};  // waits for the device
  result.seconds = seconds_since(began) - seconds_aside;
  return result;
}

int64_t largest_micro_batch(TrainableModel& model, const BatchView& batch, int64_t too_large) {
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

}  // namespace farstep
