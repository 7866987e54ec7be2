// A device's share of the step, in micro-batches that add to the same gradients. The divisor is the
// whole batch's, so shares and micro-batches add up to the mean without another pass.
#include "trainer/inner/share_gradients.h"

#include <algorithm>
#include <chrono>

#include "trainer/base/memory/out_of_memory.h"
#include "trainer/base/stopped.h"
#include "trainer/inner/optimizer/gradient_norm.h"
#include "trainer/model/batch_tensors.h"

namespace farstep {

namespace {

using SteadyClock = std::chrono::steady_clock;

double seconds_since(SteadyClock::time_point began) {
  return std::chrono::duration<double>(SteadyClock::now() - began).count();
}

// Adds up the squares of a gradient, part by part. A GPU's sum stays there until the end.
class SquaredNorm {
 public:
  explicit SquaredNorm(const at::Tensor& gradients) : gradients_(gradients) {}

  void add(int64_t begin, int64_t end) {
    const auto part = gradients_.narrow(0, begin, end - begin);
    if (part.is_cpu()) {
      on_host_ += squared_norm(part);
      return;
    }
    const auto squares = at::linalg_vector_norm(part).to(at::kDouble).square();
    on_device_ = on_device_.defined() ? on_device_ + squares : squares;
  }

  // Waits for the device.
  double value() const { return on_device_.defined() ? on_device_.item<double>() : on_host_; }

 private:
  const at::Tensor gradients_;
  double on_host_ = 0;
  at::Tensor on_device_;
};

// Returns the mean gradient of `examples` of the batch, whose part of the batch's mean has this
// squared norm.
heterogeneity::MeanGradient mean_of_part(int64_t examples, double squared_norm,
                                         const BatchView& batch) {
  const double share = static_cast<double>(examples) / static_cast<double>(batch.examples);
  return {static_cast<double>(examples), squared_norm / (share * share)};
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
  // Of the first micro-batch, before others are added to it or it is added to other devices'.
  SquaredNorm first_norm(gradients);
  const auto measured_ready = [&](int64_t begin, int64_t end) {
    first_norm.add(begin, end);
    timed_ready(begin, end);
  };
  const int64_t first_count = std::min(share.micro_batch, share.examples);
  for (int64_t done = 0; done < share.examples; done += share.micro_batch) {
    throw_if_stopped(stop);
    const int64_t count = std::min(share.micro_batch, share.examples - done);
    const auto tensors = batch_tensors(batch, share.first + done, count, gradients.device());
    GradientPass pass{.scale = scale, .add = done > 0, .ready = {}, .stop = stop};
    // In earlier micro-batches no gradient is final.
    const bool is_last = done + count == share.examples;
    const bool is_measured = share.measures_noise && done == 0;
    if (ready && is_last && is_measured) {
      pass.ready = measured_ready;
    } else if (ready && is_last) {
      pass.ready = timed_ready;
    }
    loss += model.backpropagate(tensors, pass);
    if (is_measured && !pass.ready) first_norm.add(0, gradients.numel());
  }
  ShareResult result{.loss = loss.item<double>()};  // waits for the device
  if (share.measures_noise && share.examples > 0) {
    result.part = mean_of_part(first_count, first_norm.value(), batch);
  }
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
