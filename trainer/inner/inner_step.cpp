#include "trainer/inner/inner_step.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "trainer/base/error.h"
#include "trainer/inner/gradient_norm.h"
#include "trainer/inner/lr_schedule.h"

namespace farstep {

namespace {

void require_finite(const StepResult& result, double progress) {
  if (std::isfinite(result.loss) && std::isfinite(result.gradient_norm)) return;
  throw InternalError(fmt::format(
      "training diverged at {:.4f} of the run: loss {}, gradient norm {}, learning rate {}; the "
      "step "
      "was not taken. A lower inner.peak_learning_rate or a longer warm-up usually helps",
      progress, result.loss, result.gradient_norm, result.learning_rate));
}

// The part of a batch that one device has.
struct Share {
  int64_t first = 0, sequences = 0, micro_batch = 0;
};

struct ShareResult {
  double loss = 0;  // its part of the batch's mean
  double seconds = 0;
};

// The gradient of the share's part of the batch's mean loss, in the model's gradients.
ShareResult gradients_of(TrainableModel& model, const TokenBatch& batch, const Share& share) {
  const auto began = std::chrono::steady_clock::now();
  auto gradients = model.parameters().gradients();
  if (share.sequences == 0) gradients.zero_();
  auto loss = at::zeros({}, gradients.options());
  const double scale = 1.0 / static_cast<double>(batch.sequences * batch.length);
  for (int64_t done = 0; done < share.sequences; done += share.micro_batch) {
    const int64_t count = std::min(share.micro_batch, share.sequences - done);
    const auto tokens = token_tensor(batch, share.first + done, count, gradients.device());
    loss += done == 0 ? model.set_gradients(tokens, scale) : model.add_gradients(tokens, scale);
  }
  ShareResult result{.loss = loss.item<double>()};  // waits for the device
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return result;
}

void adopt_values(TrainableModel& replica, const at::Tensor& values) {
  auto own = replica.parameters().values();
  own.copy_(values);
}

void add_replica_gradients(TrainableModel& replica, TrainableModel& model) {
  auto gradients = model.parameters().gradients();
  gradients.add_(replica.parameters().gradients().to(gradients.device()));
}

}  // namespace

InnerStep::InnerStep(TrainableModel& model, const InnerConfig& config,
                     std::vector<std::unique_ptr<Replica>> replicas)
    : model_(model),
      config_(config),
      replicas_(std::move(replicas)),
      optimizer_(make_optimizer(config, model.parameters())) {}

StepResult InnerStep::run(const TokenBatch& batch, int64_t micro_batch, double progress) {
  std::vector<int64_t> shares(num_devices());
  shares.front() = batch.sequences;
  return run(batch, shares, micro_batch, progress);
}

StepResult InnerStep::run(const TokenBatch& batch, std::span<const int64_t> shares,
                          int64_t micro_batch, double progress) {
  FARSTEP_CHECK(micro_batch > 0, "a micro-batch has sequences");
  FARSTEP_CHECK(shares.size() == num_devices() &&
                    std::accumulate(shares.begin(), shares.end(), int64_t{0}) == batch.sequences,
                "{} shares of {} sequences for {} devices", shares.size(), batch.sequences,
                num_devices());
  StepResult result{.learning_rate = learning_rate(config_, progress),
                    .tokens = batch.sequences * batch.length,
                    .device_seconds = std::vector<double>(num_devices())};
  FARSTEP_CHECK(result.tokens > 0, "a batch has tokens");
  add_gradients(batch, shares, micro_batch, result);
  result.gradient_norm = gradient_norm(model_.parameters().gradients());
  require_finite(result, progress);
  optimizer_->update(result.learning_rate, clip_factor(result.gradient_norm, config_.clip_norm));
  return result;
}

// Leaves the gradient of the whole batch in the model's gradients, and the mean loss in `result`.
void InnerStep::add_gradients(const TokenBatch& batch, std::span<const int64_t> shares,
                              int64_t micro_batch, StepResult& result) {
  const auto& values = model_.parameters().values();
  std::vector<std::future<ShareResult>> others;
  int64_t first = shares.front();
  for (std::size_t i = 0; i < replicas_.size(); ++i) {
    const Share share{first, shares[i + 1], micro_batch};
    first += shares[i + 1];
    others.push_back(replicas_[i]->submit([&batch, &values, share, &replica = *replicas_[i]] {
      if (share.sequences > 0) adopt_values(replica.model(), values);
      return gradients_of(replica.model(), batch, share);
    }));
  }
  std::vector<ShareResult> done(num_devices());
  const auto wait_for_all = [&others] {
    for (auto& other : others) {
      if (other.valid()) other.wait();  // the batch must outlive who reads it
    }
  };
  try {
    done.front() = gradients_of(model_, batch, {0, shares.front(), micro_batch});
  } catch (...) {
    wait_for_all();
    throw;
  }
  wait_for_all();
  for (std::size_t i = 0; i < others.size(); ++i) done[i + 1] = others[i].get();
  for (std::size_t i = 0; i < done.size(); ++i) {
    result.loss += done[i].loss;
    result.device_seconds[i] = done[i].seconds;
    if (i > 0 && shares[i] > 0) add_replica_gradients(replicas_[i - 1]->model(), model_);
  }
}

at::Tensor token_tensor(const TokenBatch& batch, int64_t first, int64_t count, at::Device device) {
  const int64_t row = batch.length + 1;
  FARSTEP_CHECK(static_cast<int64_t>(batch.tokens.size()) == batch.sequences * row,
                "{} token ids for {} sequences of {}", batch.tokens.size(), batch.sequences, row);
  FARSTEP_CHECK(first >= 0 && count > 0 && first + count <= batch.sequences,
                "sequences {} to {} of {}", first, first + count, batch.sequences);
  auto tokens = at::empty({count, row}, at::kLong);
  std::copy_n(batch.tokens.data() + first * row, count * row, tokens.mutable_data_ptr<int64_t>());
  return tokens.to(device);
}

}  // namespace farstep
