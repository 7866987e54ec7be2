#include "trainer/inner/muon/muon.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "tests/support/catch.h"
#include "tests/trainer/model/golden_case.h"
#include "tests/trainer/model/llama/small_model.h"

namespace farstep {
namespace {

constexpr const char* kCases[] = {"wide", "tall", "square", "row"};

// One case of the golden file that scripts/reference_muon.py writes.
class Golden : public GoldenCase {
 public:
  explicit Golden(const std::string& name) : GoldenCase("muon.safetensors", name) {}

  MuonConfig config() const {
    auto settings = json("settings");
    settings.erase("learning_rate");
    return read_json<MuonConfig>(settings, name());
  }
  double learning_rate() const { return json("settings").at("learning_rate"); }
};

// Gradients that differ from element to element and step to step.
void set_gradients(Parameters& parameters, int step) {
  auto gradients = parameters.gradients();
  gradients.copy_(at::sin(at::arange(gradients.numel(), at::kFloat) * 0.37 + step));
}

Parameters small_parameters() {
  Parameters parameters(llama_layout(kSmallConfig), at::kCPU);
  parameters.initialise(1);
  return parameters;
}

TEST_CASE("muon follows torch's") {
  for (const auto* name : kCases) {
    INFO(name);
    const Golden golden(name);
    const auto start = golden.values("start"), gradients = golden.values("gradients"),
               wanted = golden.values("values");
    LayoutBuilder builder;
    builder.weight("matrix", start.sizes().vec(), 1);
    Parameters parameters(builder.finish(), at::kCPU);
    parameters.values().copy_(start.flatten());
    Muon optimizer(golden.config(), AdamWConfig{}, parameters, parameters.layout());
    for (int64_t step = 0; step < gradients.size(0); ++step) {
      parameters.gradients().copy_(gradients[step].flatten());
      optimizer.update(golden.learning_rate());
      const auto error = (parameters.values() - wanted[step].flatten()).norm() / start.norm();
      CHECK(error.item<double>() < 1e-5);
    }
    CHECK((wanted[-1] - start).norm().item<double>() > 0.01);
  }
}

TEST_CASE("a gradient of zeros changes a matrix by its decay alone") {
  auto parameters = small_parameters();
  const auto before = parameters.values().clone();
  MuonConfig config;
  config.weight_decay = 0;
  AdamWConfig adamw;
  adamw.weight_decay = 0;
  Muon optimizer(config, adamw, parameters, parameters.layout());
  optimizer.update(0.01);
  CHECK(at::equal(parameters.values(), before));
}

TEST_CASE("an update is as large as the scale says, whatever the gradient's norm") {
  auto parameters = small_parameters();
  MuonConfig config;
  config.weight_decay = 0;
  Muon optimizer(config, AdamWConfig{}, parameters, parameters.layout());
  set_gradients(parameters, 1);
  const auto before = parameters.values().clone();
  optimizer.update(0.01, 1e-3);
  const auto change = parameters.values() - before;
  for (const auto& spec : parameters.layout()) {
    if (!spec.is_hidden_matrix) continue;
    const auto mean_square = change.narrow(0, spec.offset, spec.size()).square().mean();
    // At most as of an orthogonal matrix, 0.2; less where the gradient has few directions.
    CHECK(std::sqrt(mean_square.item<double>()) < 0.01 * 0.2 * 1.3);
    CHECK(mean_square.item<double>() > 0);
  }
}

TEST_CASE("muon leaves embedding, head and norms to adamw") {
  auto parameters = small_parameters(), wanted = small_parameters();
  const AdamWConfig adamw;
  Muon optimizer(MuonConfig{}, adamw, parameters, parameters.layout());
  AdamW all(adamw, wanted, wanted.layout());
  for (int step = 1; step <= 4; ++step) {
    set_gradients(parameters, step);
    set_gradients(wanted, step);
    optimizer.update(0.01, 0.5);
    all.update(0.01, 0.5);
  }
  int64_t num_hidden = 0;
  for (const auto& spec : parameters.layout()) {
    INFO(spec.name);
    const auto ours = parameters.values().narrow(0, spec.offset, spec.size());
    const auto theirs = wanted.values().narrow(0, spec.offset, spec.size());
    const bool is_hidden = spec.name.find("proj") != std::string::npos;
    CHECK(spec.is_hidden_matrix == is_hidden);
    CHECK(at::equal(ours, theirs) == !is_hidden);
    num_hidden += is_hidden ? 1 : 0;
  }
  CHECK(num_hidden == 7 * kSmallConfig.layers);
}

TEST_CASE("muon writes the bf16 copy of its values and leaves the same values with one") {
  auto parameters = small_parameters(), without = small_parameters();
  const auto copy = parameters.bf16_values();
  Muon optimizer(MuonConfig{}, AdamWConfig{}, parameters, parameters.layout());
  Muon other(MuonConfig{}, AdamWConfig{}, without, without.layout());
  for (int step = 1; step <= 3; ++step) {
    set_gradients(parameters, step);
    set_gradients(without, step);
    optimizer.update(0.01);
    other.update(0.01);
    CHECK(at::equal(copy, parameters.values().to(at::kBFloat16)));
    CHECK(at::equal(parameters.bf16_values(), copy));
    CHECK(at::equal(parameters.values(), without.values()));
  }
}

TEST_CASE("muon goes on from its saved state with the same bits") {
  const auto train = [](Parameters& parameters, Muon& optimizer, int first, int last) {
    for (int step = first; step <= last; ++step) {
      set_gradients(parameters, step);
      optimizer.update(0.01);
    }
  };
  auto parameters = small_parameters(), restored = small_parameters();
  Muon optimizer(MuonConfig{}, AdamWConfig{}, parameters, parameters.layout());
  train(parameters, optimizer, 1, 5);
  restored.values().copy_(parameters.values());
  Muon other(MuonConfig{}, AdamWConfig{}, restored, restored.layout());
  const auto from = optimizer.pull_state(), into = other.pull_state();
  REQUIRE(from.size() == 4);
  CHECK(from.back().name == "muon_momentum");
  for (std::size_t i = 0; i < from.size(); ++i) {
    REQUIRE(from[i].bytes.size() == into[i].bytes.size());
    std::memcpy(into[i].bytes.data(), from[i].bytes.data(), from[i].bytes.size());
  }
  other.push_state();
  train(parameters, optimizer, 6, 9);
  train(restored, other, 6, 9);
  CHECK(at::equal(parameters.values(), restored.values()));
}

}  // namespace
}  // namespace farstep
