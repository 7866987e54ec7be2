#include "trainer/inner/inner_step.h"

#include <ATen/Parallel.h>

#include <cmath>
#include <limits>

#include "tests/support/catch.h"
#include "tests/trainer/inner/small_training.h"
#include "trainer/base/error.h"
#include "trainer/base/stopped.h"
#include "trainer/model/batch_tensors.h"

namespace farstep {

namespace {

double relative_error(const at::Tensor& x, const at::Tensor& wanted) {
  return ((x - wanted).norm() / wanted.norm()).item<double>();
}

// Loss and gradient as they are asked for, to see what the step makes of them.
class GivenGradient : public TrainableModel {
 public:
  GivenGradient(double loss, float gradient)
      : parameters_(llama_layout(kSmallConfig), at::kCPU), loss_(loss), gradient_(gradient) {
    parameters_.initialise(5);
  }
  Parameters& parameters() override { return parameters_; }
  at::Tensor summed_loss(at::TensorList /*batch*/, const std::stop_token& /*stop*/) override {
    return at::full({}, loss_);
  }
  at::Tensor backpropagate(at::TensorList /*batch*/, const GradientPass& pass) override {
    auto gradients = parameters_.gradients();
    if (!pass.add) gradients.zero_();
    gradients[3].add_(gradient_);
    return at::full({}, loss_, at::kFloat);
  }

 private:
  Parameters parameters_;
  double loss_;
  float gradient_;
};

}  // namespace

TEST_CASE("a batch in micro-batches of any size gives the gradient of the whole batch") {
  const int64_t sequences = GENERATE(1, 4, 5);
  const auto batch = some_batch(sequences, 9, 1);
  auto whole = small_model();
  const auto wanted = InnerStep(whole, inner_config()).run(batch, sequences, 0.5);
  for (const int64_t micro_batch : {1, 2, 3, 100}) {
    auto model = small_model();
    const auto result = InnerStep(model, inner_config()).run(batch, micro_batch, 0.5);
    CHECK(result.loss == Approx(wanted.loss).epsilon(1e-5));
    CHECK(result.gradient_norm == Approx(wanted.gradient_norm).epsilon(1e-5));
    CHECK(result.tokens == sequences * 9);
    CHECK(relative_error(model.parameters().gradients(), whole.parameters().gradients()) < 1e-5);
  }
}

TEST_CASE("the step's gradient is that of the mean loss of all tokens") {
  const auto batch = some_batch(3, 7, 2);
  auto config = inner_config();
  config.clip_norm.reset();
  auto model = small_model();
  auto oracle = small_model();
  const auto tokens = batch_tensors(batch, 0, 3, at::kCPU).front();
  const auto loss = oracle.loss(tokens.narrow(1, 0, 7), tokens.narrow(1, 1, 7));
  loss.backward();
  const auto result = InnerStep(model, config).run(batch, 2, 0.5);
  CHECK(result.loss == Approx(loss.item<double>()).epsilon(1e-6));
  const auto& gradients = oracle.parameters().gradients();
  CHECK(relative_error(model.parameters().gradients(), gradients) < 1e-5);
  CHECK(result.gradient_norm == Approx(gradients.norm().item<double>()).epsilon(1e-5));
}

TEST_CASE("twenty steps are those of autograd and AdamW written out") {
  auto config = inner_config();
  config.clip_norm = 0.5;
  auto model = small_model();
  InnerStep step(model, config);

  auto oracle = small_model();
  auto& parameters = oracle.parameters();
  auto values = parameters.values();
  auto first = at::zeros_like(values);
  auto second = at::zeros_like(values);
  auto decay = at::zeros_like(values);
  for (const auto& spec : parameters.layout()) {
    if (spec.decays) decay.narrow(0, spec.offset, spec.size()).fill_(config.adamw.weight_decay);
  }
  for (int number = 1; number <= 20; ++number) {
    const double share = (number - 1) / 20.0;  // of the peak
    const auto batch = some_batch(4, 8, number);
    const auto result = step.run(batch, 2, share);

    auto gradients = parameters.gradients();
    gradients.zero_();
    const auto tokens = batch_tensors(batch, 0, 4, at::kCPU).front();
    const auto loss = oracle.loss(tokens.narrow(1, 0, 8), tokens.narrow(1, 1, 8));
    loss.backward();
    const double norm = gradients.norm().item<double>();
    gradients.mul_(std::min(1.0, 0.5 / (norm + 1e-6)));
    const double rate = config.rate.peak_learning_rate * share;
    values.mul_(1 - rate * decay);
    first.mul_(config.adamw.beta1).add_(gradients, 1 - config.adamw.beta1);
    second.mul_(config.adamw.beta2).addcmul_(gradients, gradients, 1 - config.adamw.beta2);
    const double correction = 1 - std::pow(config.adamw.beta1, number);
    const double root_correction = std::sqrt(1 - std::pow(config.adamw.beta2, number));
    values.sub_(first / correction / (second.sqrt() / root_correction + config.adamw.epsilon),
                rate);

    CHECK(result.loss == Approx(loss.item<double>()).epsilon(1e-4));
    CHECK(result.gradient_norm == Approx(norm).epsilon(1e-3));
    CHECK(result.learning_rate == rate);
  }
  CHECK(relative_error(model.parameters().values(), values) < 1e-4);
}

TEST_CASE("fresh moments warm up for as long as the second one averages") {
  auto model = small_model();
  auto config = inner_config();
  for (const auto& [beta2, steps] : {std::pair{0.95, 40}, {0.999, 2000}, {0.0, 2}}) {
    config.adamw.beta2 = beta2;
    CHECK(InnerStep(model, config).warm_up() == steps);
  }
  config.optimizer = InnerOptimizer::kSgd;
  CHECK(InnerStep(model, config).warm_up() == 0);
}

TEST_CASE("a step with fresh moments in mid-run is as small as its place in the warm-up") {
  auto model = small_model(ComputeType::kFP32);
  auto config = inner_config();
  config.adamw.beta2 = 0.5;
  InnerStep step(model, config);
  const double rate = config.rate.peak_learning_rate * 0.5;
  const auto rate_of_step = [&] { return step.run(some_batch(2, 8, 1), 2, 0.5).learning_rate; };
  CHECK(rate_of_step() == rate);
  CHECK(step.warm_up() == 4);
  std::stop_source stop;
  stop.request_stop();
  CHECK_THROWS_AS(step.run(some_batch(2, 8, 1), 2, 0.5, stop.get_token()), Stopped);  // not taken
  for (const double part : {0.25, 0.5, 0.75, 1.0, 1.0}) {
    CHECK(step.warm_up_factor() == part);
    CHECK(rate_of_step() == part * rate);
  }
}

TEST_CASE("a step that begins anew goes on as a fresh one with the same values") {
  for (const auto optimizer : {InnerOptimizer::kAdamW, InnerOptimizer::kMuon}) {
    auto config = inner_config();
    config.optimizer = optimizer;
    auto used = small_model(ComputeType::kFP32), fresh = small_model(ComputeType::kFP32);
    InnerStep step(used, config), first(fresh, config);
    for (int i = 0; i < 5; ++i) step.run(some_batch(2, 8, i), 2, 0.5);
    const int64_t steps = step.begin_anew();
    fresh.parameters().values().copy_(used.parameters().values());
    CHECK(first.warm_up() == steps);
    for (int i = 5; i < 9; ++i) {
      step.run(some_batch(2, 8, i), 2, 0.5);
      first.run(some_batch(2, 8, i), 2, 0.5);
    }
    CHECK(at::equal(used.parameters().values(), fresh.parameters().values()));
  }
}

TEST_CASE("training lowers the loss in fp32 and in bf16") {
  for (const auto compute : {ComputeType::kFP32, ComputeType::kBF16}) {
    auto model = small_model(compute);
    InnerStep step(model, inner_config());
    const auto batch = some_batch(4, 8, 1);
    const double before = step.run(batch, 4, 1).loss;
    double after = before;
    for (int number = 0; number < 30; ++number) after = step.run(batch, 4, 1).loss;
    CHECK(after < before - 1.0);
  }
}

TEST_CASE("two runs give the same bits with one thread and with two") {
  for (const int number : {1, 2}) {
    at::set_num_threads(number);
    const auto train = [] {
      auto model = small_model();
      InnerStep step(model, inner_config());
      for (int i = 0; i < 5; ++i) step.run(some_batch(4, 16, i), 3, 0.3);
      return model.parameters().values().clone();
    };
    CHECK(at::equal(train(), train()));
  }
}

TEST_CASE("a loss or gradient that is not finite stops before anything changes") {
  const double infinity = std::numeric_limits<double>::infinity();
  const auto nan = std::nanf("");
  for (const auto& [loss, gradient] :
       {std::pair{std::nan(""), 1.0F}, {infinity, 1.0F}, {2.0, nan}, {2.0, -HUGE_VALF}}) {
    GivenGradient model(loss, gradient);
    const auto before = model.parameters().values().clone();
    InnerStep step(model, inner_config());
    CHECK_THROWS_AS(step.run(some_batch(1, 4, 1), 1, 0.25), DivergenceError);
    CHECK_THROWS_WITH(step.run(some_batch(1, 4, 1), 1, {0.5, 1, false, /*progress=*/0.25}),
                      Catch::StartsWith("training diverged at 0.2500 of the run: loss "));
    CHECK(at::equal(model.parameters().values(), before));
    CHECK(*reinterpret_cast<const int64_t*>(step.pull_state()[2].bytes.data()) == 0);
  }
}

TEST_CASE("the gradient is clipped to the configured norm") {
  auto config = inner_config();
  config.optimizer = InnerOptimizer::kSgd;
  config.rate.peak_learning_rate = 1;
  GivenGradient model(2.0, -8.0F);
  const auto before = model.parameters().values().clone();
  const auto result = InnerStep(model, config).run(some_batch(1, 4, 1), 1, 1);
  CHECK(result.gradient_norm == 8);
  CHECK((model.parameters().values() - before)[3].item<float>() == Approx(1).epsilon(1e-5));
}

TEST_CASE("a batch without tokens or a micro-batch of none is a bug") {
  auto model = small_model();
  InnerStep step(model, inner_config());
  CHECK_THROWS_AS(step.run({}, 1, 0), InternalError);
  CHECK_THROWS_AS(step.run(some_batch(1, 4, 1), 0, 0), InternalError);
}

}  // namespace farstep
