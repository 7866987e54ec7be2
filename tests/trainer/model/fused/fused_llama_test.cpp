#include "trainer/model/fused/fused_llama.h"

#include <ATen/Parallel.h>

#include <cmath>

#include "tests/support/catch.h"
#include "tests/trainer/model/llama/random_model.h"
#include "trainer/base/error.h"
#include "trainer/model/cpu_ops/cpu_ops.h"
#include "trainer/model/llama/llama.h"

namespace farstep {

namespace {

const LlamaConfig kGrouped{.vocabulary = 29,
                           .hidden = 12,
                           .intermediate = 10,
                           .layers = 2,
                           .heads = 3,
                           .kv_heads = 1,
                           .tied_embeddings = true};

// Sizes differ, so that none can stand for another, and few are a multiple of anything.
const ModelShape kShapes[] = {
    {"grouped by three and tied", kGrouped, 2, 7},
    {"one token", kGrouped, 1, 1},
    {"heads of their own", {101, 24, 20, 3, 4, 4}, 3, 5},
    {"two tiles of attention", {67, 32, 40, 2, 2, 1}, 1, 300},
    {"several pieces of rows", {53, 16, 24, 2, 2, 2}, 9, 77},
    {"no block", {31, 8, 4, 0, 2, 1}, 2, 3},
    {"wide", {101, 128, 256, 2, 4, 2}, 2, 40},
    {"heads wider than hidden",
     {.vocabulary = 43,
      .hidden = 12,
      .intermediate = 10,
      .layers = 2,
      .heads = 3,
      .kv_heads = 1,
      .own_head_size = 14},
     2,
     37},
    {"heads narrower than hidden and scaled positions",
     {.vocabulary = 43,
      .hidden = 40,
      .intermediate = 6,
      .layers = 2,
      .heads = 4,
      .kv_heads = 2,
      .tied_embeddings = true,
      .own_head_size = 6,
      .rope_scaling = RopeScaling{.original_max_position_embeddings = 16}},
     2,
     70},
};

template <typename T>
constexpr double kTolerance = sizeof(T) == 4 ? 1e-5 : 1e-2;

template <typename T>
at::Tensor values_of_products(const Parameters& parameters) {
  return sizeof(T) == 4 ? parameters.values() : rounded_matrices(parameters);
}

}  // namespace

TEMPLATE_TEST_CASE("loss and every gradient are those of fp64", "", float, BF16) {
  for (const auto& shape : kShapes) {
    INFO(shape.name);
    FusedLlama<TestType> model(shape.config, std::make_unique<CpuOps<TestType>>());
    GradientErrors errors;
    for (int draw = 0; draw < draws_of(shape); ++draw) {
      randomise(model.parameters(), fresh_seed());
      const auto tokens = random_tokens(shape.config, shape.sequences, shape.length);
      const auto wanted =
          fp64_oracle(shape.config, values_of_products<TestType>(model.parameters()), tokens);
      const auto loss = model.set_gradients(tokens, 1.0).template item<double>();
      errors.add(model.parameters(), loss, model.parameters().gradients(), wanted);
      CHECK(model.summed_loss(tokens).template item<double>() == Approx(loss).epsilon(1e-6));
    }
    errors.check(kTolerance<TestType>);
  }
}

TEST_CASE("loss and every gradient are those of autograd") {
  for (const auto& shape : kShapes) {
    INFO(shape.name);
    FusedLlama<float> model(shape.config, std::make_unique<CpuOps<float>>());
    randomise(model.parameters(), fresh_seed());
    Llama oracle(shape.config, at::kCPU, ComputeType::kFP32);
    auto oracle_values = oracle.parameters().values();
    oracle_values.copy_(model.parameters().values());
    const auto tokens = random_tokens(shape.config, shape.sequences, shape.length);
    const auto loss = oracle.add_gradients(tokens, 0.25).item<double>();
    const OracleResult wanted{loss, oracle.parameters().gradients().to(at::kDouble)};
    const auto own = model.set_gradients(tokens, 0.25).item<double>();
    GradientErrors errors;
    errors.add(model.parameters(), own, model.parameters().gradients(), wanted);
    errors.check(1e-5);
  }
}

TEMPLATE_TEST_CASE("gradients are added or replace what is there", "", float, BF16) {
  for (const auto& shape : kShapes) {
    INFO(shape.name);
    FusedLlama<TestType> model(shape.config, std::make_unique<CpuOps<TestType>>());
    randomise(model.parameters(), fresh_seed());
    const auto tokens = random_tokens(shape.config, shape.sequences, shape.length);
    auto gradients = model.parameters().gradients();
    gradients.fill_(std::nanf(""));
    model.set_gradients(tokens, 1.0);
    const auto once = gradients.clone();
    model.add_gradients(tokens, 0.5);
    CHECK(norm_of(gradients - 1.5 * once) < 0.1 * kTolerance<TestType> * norm_of(once));
    model.set_gradients(tokens, 1.0);
    CHECK(at::equal(gradients, once));
  }
}

TEMPLATE_TEST_CASE("backward tells of every part once when its gradients are there", "", float,
                   BF16) {
  for (const auto& shape : kShapes) {
    INFO(shape.name);
    FusedLlama<TestType> model(shape.config, std::make_unique<CpuOps<TestType>>());
    randomise(model.parameters(), fresh_seed());
    const auto tokens = random_tokens(shape.config, shape.sequences, shape.length);
    auto gradients = model.parameters().gradients();
    auto told = at::full_like(gradients, std::nanf(""));
    const auto ready = [&](int64_t begin, int64_t end) {
      auto part = told.slice(0, begin, end);
      CHECK(part.isnan().all().template item<bool>());
      part.copy_(gradients.slice(0, begin, end));
    };
    model.backpropagate(tokens, {.scale = 1, .add = false, .ready = ready});
    CHECK(at::equal(told, gradients));
  }
}

TEMPLATE_TEST_CASE("recomputation changes no bit and keeps less", "", float, BF16) {
  for (const auto& shape : kShapes) {
    INFO(shape.name);
    FusedLlama<TestType> keeps(shape.config, std::make_unique<CpuOps<TestType>>());
    FusedLlama<TestType> recomputes(shape.config, std::make_unique<CpuOps<TestType>>(),
                                    /*recompute=*/true);
    const auto seed = fresh_seed();
    const auto tokens = random_tokens(shape.config, shape.sequences, shape.length);
    for (auto* model : {&keeps, &recomputes}) {
      randomise(model->parameters(), seed);
      model->set_gradients(tokens, 1.0);
      model->add_gradients(tokens, 0.5);
    }
    CHECK(at::equal(keeps.parameters().gradients(), recomputes.parameters().gradients()));
    CHECK((shape.config.layers < 2 || recomputes.activation_bytes() < keeps.activation_bytes()));
  }
}

TEMPLATE_TEST_CASE("equal calls give equal bits with one thread and with two", "", float, BF16) {
  for (const int number : {1, 2}) {
    at::set_num_threads(number);
    for (const auto& shape : kShapes) {
      const auto seed = fresh_seed();
      const auto tokens = random_tokens(shape.config, shape.sequences, shape.length);
      const auto run = [&] {
        FusedLlama<TestType> model(shape.config, std::make_unique<CpuOps<TestType>>());
        randomise(model.parameters(), seed);
        const auto loss = model.set_gradients(tokens, 1.0);
        return at::cat({loss.view({1}), model.parameters().gradients()});
      };
      CHECK(at::equal(run(), run()));
    }
  }
}

TEMPLATE_TEST_CASE("batches of changing size use the same memory", "", float, BF16) {
  FusedLlama<TestType> model(kGrouped, std::make_unique<CpuOps<TestType>>());
  randomise(model.parameters(), fresh_seed());
  const auto large = random_tokens(kGrouped, 5, 40);
  model.set_gradients(large, 1.0);
  const auto first = model.parameters().gradients().clone();
  const auto bytes = model.activation_bytes();
  model.set_gradients(random_tokens(kGrouped, 1, 3), 1.0);
  model.set_gradients(random_tokens(kGrouped, 40, 5), 1.0);
  model.set_gradients(large, 1.0);
  CHECK(model.activation_bytes() == bytes);
  CHECK(at::equal(model.parameters().gradients(), first));
}

TEST_CASE("whoever changes the weights the products see it") {
  FusedLlama<BF16> model(kGrouped, std::make_unique<CpuOps<BF16>>());
  auto& parameters = model.parameters();
  randomise(parameters, fresh_seed());
  const auto tokens = random_tokens(kGrouped, 2, 5);
  const auto loss = [&] { return model.summed_loss(tokens).item<double>(); };
  const auto fresh_loss = [&] {
    FusedLlama<BF16> other(kGrouped, std::make_unique<CpuOps<BF16>>());
    auto values = other.parameters().values();
    values.copy_(parameters.values());
    return other.summed_loss(tokens).item<double>();
  };
  double before = loss();
  const auto changes = [&](const char* how) {
    INFO(how);
    const double after = loss();
    CHECK(after != before);
    CHECK(after == fresh_loss());
    before = after;
  };
  auto values = parameters.values();
  values.mul_(1.1);
  changes("an operation on all values");
  {
    auto part = values.narrow(0, 7, 90);
    part.add_(0.1);
  }
  changes("an operation on a part of them");
  parameters.host_values().pull()[3] += 1.0F;
  for (auto& value : parameters.host_values().pull()) value *= 1.1F;
  parameters.host_values().push();
  changes("a push of what was written in place");
  const std::vector<float> some(40, 0.5F);
  parameters.host_values().push(3, some);
  changes("a push of a part");
  parameters.initialise(99);
  changes("fresh weights");
}

TEST_CASE("the loss of a model that is too sure of itself is finite and of a broken one is not") {
  FusedLlama<float> model(kGrouped, std::make_unique<CpuOps<float>>());
  auto values = model.parameters().values();
  const auto tokens = random_tokens(kGrouped, 2, 5);
  CHECK(model.summed_loss(tokens).item<double>() == Approx(10 * std::log(29)));
  randomise(model.parameters(), fresh_seed());
  values.mul_(30);
  CHECK(std::isfinite(model.set_gradients(tokens, 1.0).item<double>()));
  CHECK(std::isfinite(norm_of(model.parameters().gradients())));
  values[40] = std::nanf("");
  CHECK(!std::isfinite(model.set_gradients(at::full({1, 4}, 3), 1.0).item<double>()));
}

TEST_CASE("tokens that are no batch or beyond the vocabulary are refused by the fused model") {
  FusedLlama<float> model(kGrouped, std::make_unique<CpuOps<float>>());
  CHECK_THROWS_AS(model.summed_loss(at::zeros({4}, at::kLong)), InternalError);
  CHECK_THROWS_AS(model.summed_loss(at::zeros({0, 4}, at::kLong)), InternalError);
  CHECK_THROWS_AS(model.summed_loss(at::zeros({2, 1}, at::kLong)), InternalError);
  CHECK_THROWS_AS(model.summed_loss(at::full({1, 4}, 29, at::kLong)), InternalError);
  CHECK_THROWS_AS(model.summed_loss(at::full({1, 4}, -1, at::kLong)), InternalError);
}

}  // namespace farstep
