// The inner step of a GPU that the CPU plays, a step behind the host: kernels, update and what is
// asked and told, recorded and played.
#include <cuda_runtime_api.h>

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "tests/support/catch.h"
#include "tests/trainer/inner/small_training.h"
#include "trainer/base/error.h"
#include "trainer/inner/graph_recorder.h"
#include "trainer/inner/inner_step.h"
#include "trainer/inner/lr_schedule.h"

namespace farstep {

namespace {

int num_recordings = 0;

class PlayedRecording : public Recording {
 public:
  explicit PlayedRecording(EmulatedWork work) : work_(std::move(work)) {}
  void play() override {
    for (const auto& one : work_) one();
  }

 private:
  const EmulatedWork work_;
};

class PlayedRecorder : public WorkRecorder {
 public:
  std::unique_ptr<Recording> record(const std::function<void()>& work) override {
    EmulatedWork recorded;
    emulated_recording = &recorded;
    work();
    emulated_recording = nullptr;
    ++num_recordings;
    return std::make_unique<PlayedRecording>(std::move(recorded));
  }
};

constexpr int64_t kBadToken = -1;

// Loss and gradient depend on every token and value, and are the GPU's work like any kernel's.
class PlayedModel : public TrainableModel {
 public:
  PlayedModel() : parameters_(kSmallConfig, at::kCPU) { parameters_.initialise(5); }

  Parameters& parameters() override { return parameters_; }
  at::Tensor summed_loss(const at::Tensor& /*tokens*/) override { return at::zeros({}); }
  at::Tensor backpropagate(const at::Tensor& tokens, const GradientPass& pass) override {
    auto loss = at::empty({}, at::kFloat);
    auto* const gradients = parameters_.gradients().mutable_data_ptr<float>();
    const auto* const values = parameters_.values().const_data_ptr<float>();
    const bool add = pass.add;
    const auto scale = static_cast<float>(pass.scale);
    emulate_work([this, tokens, loss, gradients, values, add, scale] {
      float sum = 0;
      for (int64_t i = 0; i < tokens.numel(); ++i) {
        const int64_t token = tokens.const_data_ptr<int64_t>()[i];
        sum += token == kBadToken ? std::nanf("") : static_cast<float>(token * (i % 5));
      }
      for (int64_t i = 0; i < parameters_.size(); ++i) {
        const float gradient = scale * (values[i] + 0.01F * sum * static_cast<float>(i % 7 - 3));
        gradients[i] = add ? gradients[i] + gradient : gradient;
      }
      *loss.mutable_data_ptr<float>() = scale * (sum + values[3]);
    });
    return loss;
  }
  std::optional<int64_t> recordable_memory() const override { return memory; }

  int64_t memory = 1;

 private:
  Parameters parameters_;
};

// A model and its training from one seed.
struct Site {
  explicit Site(bool graphs) {
    auto config = inner_config();
    config.cuda_graph = graphs;
    step = std::make_unique<InnerStep>(model, config);
  }
  std::optional<StepResult> start(const TokenBatch& batch, int64_t micro_batch, double progress) {
    return step->start(batch, std::vector{batch.sequences}, micro_batch, progress);
  }

  PlayedModel model;
  std::unique_ptr<InnerStep> step;
};

struct Plan {
  int64_t sequences, length, micro_batch;
};
const Plan kPlans[] = {{4, 8, 4}, {4, 8, 4}, {4, 8, 3}, {4, 8, 4}, {4, 8, 3}, {4, 8, 3},
                       {9, 8, 2}, {4, 8, 4}, {9, 8, 2}, {1, 3, 1}, {9, 8, 2}, {4, 8, 4}};

bool equal(const StepResult& a, const StepResult& b) {
  return a.loss == b.loss && a.gradient_norm == b.gradient_norm &&
         a.learning_rate == b.learning_rate && a.tokens == b.tokens;
}

// What becomes of all plans, one after the other.
std::vector<StepResult> results(Site& site, bool late) {
  std::vector<StepResult> found;
  double progress = 0;
  for (int64_t seed = 0; const auto& plan : kPlans) {
    const auto batch = some_batch(plan.sequences, plan.length, seed++ % 3);
    progress += 0.08;
    if (!late) {
      found.push_back(site.step->run(batch, plan.micro_batch, progress));
    } else if (const auto result = site.start(batch, plan.micro_batch, progress)) {
      found.push_back(*result);
    }
  }
  if (const auto last = site.step->finish()) found.push_back(*last);
  return found;
}

}  // namespace

std::unique_ptr<WorkRecorder> make_graph_recorder(at::Device) {
  return std::make_unique<PlayedRecorder>();
}

TEST_CASE("steps known late and steps recorded have the bits of steps waited for") {
  Site plain(false), recorded(true), late(false), both(true);
  const auto wanted = results(plain, false);
  REQUIRE(wanted.size() == std::size(kPlans));
  num_recordings = 0;
  for (const auto& [site, is_late] : {std::pair{&recorded, false}, {&late, true}, {&both, true}}) {
    const auto found = results(*site, is_late);
    REQUIRE(found.size() == wanted.size());
    for (std::size_t i = 0; i < found.size(); ++i) CHECK(equal(found[i], wanted[i]));
    CHECK(at::equal(site->model.parameters().values(), plain.model.parameters().values()));
    CHECK(at::equal(site->model.parameters().bf16_values(),
                    plain.model.parameters().values().to(at::kBFloat16)));
  }
  CHECK(num_recordings == 2 * 4);  // the room that nine sequences take voids two of them
  CHECK(wanted[4].learning_rate != wanted[5].learning_rate);
}

TEST_CASE("a late step is an update by AdamW and its state is known after it") {
  Site site(true);
  const auto batch = some_batch(4, 8, 1);
  for (int i = 0; i < 5; ++i) site.start(batch, 2, 0.5);
  CHECK_THROWS_AS(site.step->pull_state(), InternalError);
  CHECK_THROWS_AS(site.step->run(batch, 2, 0.5), InternalError);
  CHECK(site.step->finish());
  CHECK(!site.step->finish());
  const auto state = site.step->pull_state();
  CHECK(*reinterpret_cast<const int64_t*>(state[2].bytes.data()) == 5);
}

TEST_CASE("after a step that is not finite none is taken until that is told") {
  for (const bool graphs : {false, true}) {
    Site site(graphs), wanted(graphs);
    const auto good = some_batch(4, 8, 1);
    auto bad = good;
    bad.tokens[7] = kBadToken;
    for (int i = 0; i < 3; ++i) {
      site.start(good, 2, 0.5);
      wanted.start(good, 2, 0.5);
    }
    wanted.step->finish();
    CHECK(site.start(bad, 2, 0.5));
    CHECK_THROWS_AS(site.start(good, 2, 0.5), InternalError);
    CHECK(!site.step->finish());
    CHECK(at::equal(site.model.parameters().values(), wanted.model.parameters().values()));

    CHECK_THROWS_AS(site.step->run(bad, 2, 0.5), InternalError);
    const auto after = site.step->run(good, 2, 0.6);
    CHECK(equal(after, wanted.step->run(good, 2, 0.6)));
    CHECK(at::equal(site.model.parameters().values(), wanted.model.parameters().values()));
  }
}

TEST_CASE("a recording sees values that were pushed and memory that moved") {
  Site site(true), wanted(false);
  const auto batch = some_batch(4, 8, 2);
  for (int i = 0; i < 6; ++i) {
    if (i == 3) {
      for (auto* one : {&site, &wanted}) {
        auto& mirror = one->model.parameters().host_values();
        mirror.pull()[3] = 0.25F;
        mirror.push();
      }
    }
    if (i == 4) site.model.memory = 2;
    CHECK(equal(site.step->run(batch, 2, 0.5), wanted.step->run(batch, 2, 0.5)));
  }
  CHECK(at::equal(site.model.parameters().values(), wanted.model.parameters().values()));
}

}  // namespace farstep
