#include "trainer/model/llama/llama.h"

#include <ATen/Parallel.h>

#include <cmath>
#include <cstring>
#include <iostream>
#include <optional>

#include "tests/support/catch.h"
#include "tests/trainer/model/first_gpu.h"
#include "tests/trainer/model/golden_case.h"
#include "tests/trainer/model/llama/small_model.h"
#include "trainer/base/error.h"
#include "trainer/model/device.h"
#include "trainer/model/shape/hf_config.h"

namespace farstep {

namespace {

constexpr const char* kCases[] = {"plain", "grouped_tied", "one_key_head", "one_token"};

// One case of the golden file that scripts/reference_numerics.py writes.
class Golden : public GoldenCase {
 public:
  explicit Golden(const std::string& name) : GoldenCase("llama.safetensors", name) {}

  LlamaConfig config() const { return from_hugging_face(json("config"), name()).shape; }
  std::vector<std::string> parameter_names() const { return json("names"); }
  at::Tensor tokens() const {
    const auto& found = entry("tokens");
    auto tokens = at::empty(found.shape, at::kLong);
    std::memcpy(tokens.mutable_data_ptr<int64_t>(), found.bytes.data(), found.bytes.size());
    return tokens;
  }
  double loss() const { return values("loss").item<double>(); }
};

double norm_of(const at::Tensor& x) {
  return x.to(at::kCPU, at::kDouble).norm().item<double>();
}

// Loss and every gradient against the golden file's. A parameter's error is taken relative to its
// gradient's norm, or to 1e-2 of the whole gradient's where that is larger: one token alone has no
// gradient in queries and keys.
void compare_with_golden(const std::string& name, at::Device device, ComputeType compute,
                         double tolerance) {
  INFO(name);
  const Golden golden(name);
  Llama model(golden.config(), device, compute);
  const auto& parameters = model.parameters();
  double whole_norm = 0;
  for (const auto& spec : parameters.layout()) {
    parameters.values()
        .narrow(0, spec.offset, spec.size())
        .copy_(golden.values("weights/" + spec.name).flatten());
    whole_norm = std::hypot(whole_norm, norm_of(golden.values("gradients/" + spec.name)));
  }
  const auto tokens = golden.tokens().to(device);
  const int64_t targets = tokens.size(0) * (tokens.size(1) - 1);
  const auto loss = model.add_gradients(tokens, 1.0 / static_cast<double>(targets));
  CHECK(loss.item<double>() == Approx(golden.loss()).epsilon(tolerance));
  for (const auto& spec : parameters.layout()) {
    INFO(spec.name);
    const auto wanted = golden.values("gradients/" + spec.name);
    const auto error = norm_of(parameters.leaf(spec.name).grad().cpu() - wanted);
    CHECK(error <= tolerance * std::max(norm_of(wanted), 1e-2 * whole_norm));
  }
}

at::Tensor some_tokens(int64_t sequences, int64_t columns) {
  return (at::arange(sequences * columns).square() * 7 + 3)
      .remainder(kSmallConfig.vocabulary)
      .view({sequences, columns});
}

}  // namespace

TEST_CASE("parameters stand in the order of transformers") {
  for (const auto* name : kCases) {
    const Golden golden(name);
    std::vector<std::string> names;
    for (const auto& spec : llama_layout(golden.config())) names.push_back(spec.name);
    CHECK(names == golden.parameter_names());
  }
}

TEST_CASE("loss and gradients in fp32 are those of transformers within 1e-5") {
  for (const auto* name : kCases) compare_with_golden(name, at::kCPU, ComputeType::kFP32, 1e-5);
}

TEST_CASE("loss and gradients in bf16 are those of transformers within 2e-2") {
  for (const auto* name : kCases) compare_with_golden(name, at::kCPU, ComputeType::kBF16, 2e-2);
}

TEST_CASE("loss and gradients on a GPU are those of transformers") {
  const auto gpu = first_gpu();
  if (!gpu) return;
  for (const auto* name : kCases) {
    compare_with_golden(name, *gpu, ComputeType::kFP32, 1e-5);
    compare_with_golden(name, *gpu, ComputeType::kBF16, 2e-2);
  }
}

TEST_CASE("a model of zeros finds all tokens equally likely") {
  Llama model(kSmallConfig, at::kCPU, ComputeType::kFP32);
  const auto tokens = some_tokens(2, 5);
  CHECK(model.loss(tokens, tokens).item<double>() == Approx(std::log(kSmallConfig.vocabulary)));
}

TEST_CASE("a position does not see the tokens after it") {
  const auto compute = GENERATE(ComputeType::kFP32, ComputeType::kBF16);
  auto model = small_model(compute);
  const auto tokens = some_tokens(2, 9);
  auto changed = tokens.clone();
  changed.narrow(1, 6, 3).fill_(1);
  const auto before = model.logits(tokens);
  const auto after = model.logits(changed);
  CHECK(before.sizes() == at::IntArrayRef({2, 9, kSmallConfig.vocabulary}));
  CHECK(before.scalar_type() == at::kFloat);
  CHECK(at::equal(before.narrow(1, 0, 6), after.narrow(1, 0, 6)));
  CHECK(!at::equal(before.narrow(1, 6, 3), after.narrow(1, 6, 3)));
}

TEST_CASE("logits do not depend on how long the sequences before were") {
  auto model = small_model();
  const auto tokens = some_tokens(1, 21);
  const auto first = model.logits(tokens.narrow(1, 0, 3));
  const auto all = model.logits(tokens);
  CHECK(at::allclose(first, all.narrow(1, 0, 3), 1e-5, 1e-6));
  CHECK(at::equal(first, model.logits(tokens.narrow(1, 0, 3))));
}

TEST_CASE("gradients add up and are in proportion to their scale") {
  auto model = small_model();
  const auto& gradients = model.parameters().gradients();
  const auto tokens = some_tokens(2, 8);
  const auto once = model.add_gradients(tokens, 1.0).item<double>();
  const auto gradient = gradients.clone();
  const auto mean = model.loss(tokens.narrow(1, 0, 7), tokens.narrow(1, 1, 7)).item<double>();
  CHECK(once == Approx(14 * mean));
  const auto twice = model.add_gradients(tokens, 0.5).item<double>();
  CHECK(twice == Approx(once / 2));
  CHECK(at::allclose(gradients, 1.5 * gradient, 1e-5, 1e-6));
}

TEST_CASE("equal calls give equal bits with one thread and with two") {
  const auto compute = GENERATE(ComputeType::kFP32, ComputeType::kBF16);
  for (const int number : {1, 2}) {
    at::set_num_threads(number);
    const auto run = [&] {
      Llama model({.vocabulary = 300,
                   .hidden = 64,
                   .intermediate = 96,
                   .layers = 2,
                   .heads = 4,
                   .kv_heads = 2},
                  at::kCPU, compute);
      model.parameters().initialise(5);
      const auto tokens = (at::arange(4 * 65).square() * 7).remainder(300).view({4, 65});
      const auto loss = model.add_gradients(tokens, 1.0);
      return at::cat({loss.view({1}), model.parameters().gradients()});
    };
    CHECK(at::equal(run(), run()));
  }
}

TEST_CASE("token ids that are no batch or beyond the vocabulary are refused") {
  auto model = small_model();
  CHECK_THROWS_AS(model.logits(at::zeros({4}, at::kLong)), InternalError);
  CHECK_THROWS_AS(model.logits(at::zeros({0, 4}, at::kLong)), InternalError);
  CHECK_THROWS(model.logits(at::full({1, 4}, kSmallConfig.vocabulary, at::kLong)));
}

}  // namespace farstep
