#include "trainer/inner/inner_step.h"

#include <algorithm>
#include <cmath>

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

}  // namespace

InnerStep::InnerStep(TrainableModel& model, const InnerConfig& config)
    : model_(model), config_(config), optimizer_(make_optimizer(config, model.parameters())) {}

StepResult InnerStep::run(const TokenBatch& batch, int64_t micro_batch, double progress) {
  FARSTEP_CHECK(micro_batch > 0, "a micro-batch has sequences");
  StepResult result{.learning_rate = learning_rate(config_, progress),
                    .tokens = batch.sequences * batch.length};
  FARSTEP_CHECK(result.tokens > 0, "a batch has tokens");
  auto gradients = model_.parameters().gradients();
  gradients.zero_();
  auto loss = at::zeros({}, gradients.options());
  for (int64_t first = 0; first < batch.sequences; first += micro_batch) {
    const int64_t count = std::min(micro_batch, batch.sequences - first);
    const auto tokens = token_tensor(batch, first, count, gradients.device());
    loss += model_.add_gradients(tokens, 1.0 / static_cast<double>(result.tokens));
  }
  result.loss = loss.item<double>();
  result.gradient_norm = gradient_norm(gradients);
  require_finite(result, progress);
  const double factor = clip_factor(result.gradient_norm, config_.clip_norm);
  if (factor < 1) gradients.mul_(factor);
  optimizer_->update(result.learning_rate);
  return result;
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
