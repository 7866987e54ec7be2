// The inner step of a GPU that the CPU emulates, whose results the host learns a step late: its
// bits, its failures, its snapshots and the order of its streams.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/trainer/inner/gpu/emulated_gpu_site.h"
#include "tests/trainer/run/small_examples.h"
#include "trainer/base/error.h"
#include "trainer/base/memory/out_of_memory.h"
#include "trainer/data/loader.h"
#include "trainer/rate/rate_schedule.h"
#include "trainer/run/model_training.h"

namespace farstep {

namespace {

struct Plan {
  int64_t sequences, length, micro_batch;
};
const Plan kPlans[] = {{4, 8, 4}, {4, 8, 4}, {4, 8, 3}, {4, 8, 4}, {4, 8, 3}, {4, 8, 3},
                       {9, 8, 2}, {4, 8, 4}, {9, 8, 2}, {1, 3, 1}, {9, 8, 2}, {4, 8, 4}};

bool equal(const StepResult& a, const StepResult& b) {
  return a.loss == b.loss && a.gradient_norm == b.gradient_norm &&
         a.learning_rate == b.learning_rate && a.tokens == b.tokens && a.noise == b.noise;
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

std::unique_ptr<StepRecorder> make_graph_recorder(at::Device) {
  return std::make_unique<EmulatedRecorder>();
}

TEST_CASE("a step on a GPU measures its first micro-batch against all of them") {
  const auto batch = some_batch(4, 8, 1);
  TokenBatch first{.sequences = 3, .length = 8, .tokens = batch.tokens};
  first.tokens.resize(27);
  Site site(true), part_alone(true), at_once(true);
  const auto result = site.step->run(batch, 3, 0.0);
  const double part_norm = part_alone.step->run(first, 3, 0.0).gradient_norm;
  const heterogeneity::MeanGradient part{3, part_norm * part_norm};
  const heterogeneity::MeanGradient whole{4, result.gradient_norm * result.gradient_norm};
  REQUIRE(result.noise);
  const auto wanted = *noise_of_step({&part, 1}, whole, 4);
  CHECK(result.noise->examples == 4);
  CHECK(result.noise->squared_norm == Approx(wanted.squared_norm).epsilon(1e-4));
  CHECK(result.noise->variance == Approx(wanted.variance).epsilon(1e-4));
  CHECK(!at_once.step->run(batch, 4, 0.0).noise);
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

TEST_CASE("a step without room leaves a GPU's training as it was") {
  for (const bool graphs : {false, true}) {
    Site whole(graphs), site(graphs);
    const auto train = [](Site& trained, int64_t steps) {
      for (int64_t seed = 0; seed < steps; ++seed) trained.start(some_batch(4, 8, seed), 2, 0.5);
    };
    train(whole, 3);
    train(site, 3);
    site.model.room = 2;
    CHECK_THROWS_AS(site.start(some_batch(9, 8, 1), 9, 0.5), NoRoomError);
    CHECK_THROWS_WITH(site.start(some_batch(9, 8, 1), 3, 0.5),
                      Catch::Contains("the largest that fits is 2"));
    train(whole, 4);
    train(site, 4);
    const auto wanted = whole.step->finish(), found = site.step->finish();
    REQUIRE((wanted && found));
    CHECK(equal(*found, *wanted));
    CHECK(at::equal(site.model.parameters().values(), whole.model.parameters().values()));
  }
}

TEST_CASE("a GPU whose memory shrinks goes on with smaller micro-batches, a step late as before") {
  for (const bool graphs : {false, true}) {
    Site wanted(graphs), site(graphs);
    const SmallExamples examples;
    RealClock clock;
    TemporaryFolder folder;
    Recorder recorder(folder.path(), "site", clock);
    ModelTraining training(
        *site.step, site.model.parameters().host_values(),
        std::make_unique<Loader>(examples, Sampler(DataOrder::kSequential, 0, 100)),
        {EmulatedSpeed(std::nullopt)}, {std::nullopt}, clock);
    SiteTrainer trainer(training, recorder, clock);
    const auto work = small_work(4, 4);
    trainer.begin(work);
    double wanted_losses = 0;
    for (int64_t step = 0; step < 5; ++step) {
      site.model.room = step < 1 ? 4 : 2;  // before a graph holds its memory
      trainer.step(nullptr, {});
      CHECK(training.is_step_under_way());
      const int64_t first = 4 * step;
      const auto batch = examples.read(std::vector{first, first + 1, first + 2, first + 3});
      const double position = position_after(0, step, work.plan.local_steps);
      const double share = rate_share(work.rate, work.cycle, position);
      wanted_losses += wanted.step->run(batch.view, site.model.room, share).loss;
    }
    trainer.finish();
    CHECK(trainer.loss_sum() == wanted_losses);
    CHECK(at::equal(site.model.parameters().values(), wanted.model.parameters().values()));
  }
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

TEST_CASE("a snapshot of a GPU is the state of its moment and the recorded update waits for it") {
  for (const bool with_values : {false, true}) {
    num_external_waits = 0;
    Site site(true), wanted(false);
    for (int step = 0; step < 6; ++step) {
      const auto batch = some_batch(4, 8, step);
      std::vector<std::byte> state;
      for (const auto& buffer : site.step->pull_state()) {
        state.insert(state.end(), buffer.bytes.begin(), buffer.bytes.end());
      }
      const auto values = site.model.parameters().values().clone();
      const auto copies = site.step->start_snapshot(with_values);
      site.start(batch, 2, 0.5);
      site.step->copy_snapshot();
      CHECK(site.step->finish());
      wanted.step->run(batch, 2, 0.5);

      REQUIRE(copies.size() == (with_values ? 4U : 3U));
      std::vector<std::byte> copied;
      for (const char* name : {"exp_avg", "exp_avg_sq", "step"}) {
        const auto& buffer = *std::ranges::find(copies, name, &NamedBuffer::name);
        copied.insert(copied.end(), buffer.bytes.begin(), buffer.bytes.end());
      }
      CHECK((copied == state));
      if (with_values) {
        const auto& local = *std::ranges::find(copies, "theta_local", &NamedBuffer::name);
        CHECK(std::ranges::equal(
            local.bytes, std::as_bytes(std::span(values.const_data_ptr<float>(),
                                                 static_cast<std::size_t>(values.numel())))));
      }
    }
    CHECK(num_external_waits == 1);  // one step was recorded, and then replayed
    CHECK(at::equal(site.model.parameters().values(), wanted.model.parameters().values()));
    site.start(some_batch(4, 8, 1), 2, 0.5);
    CHECK_THROWS_AS(site.step->start_snapshot(with_values), InternalError);
    CHECK(site.step->finish());
  }
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
    CHECK_THROWS_AS(site.start(good, 2, 0.5), DivergenceError);
    CHECK(!site.step->finish());
    CHECK(at::equal(site.model.parameters().values(), wanted.model.parameters().values()));

    CHECK_THROWS_AS(site.step->run(bad, 2, 0.5), DivergenceError);
    const auto after = site.step->run(good, 2, 0.6);
    CHECK(equal(after, wanted.step->run(good, 2, 0.6)));
    CHECK(at::equal(site.model.parameters().values(), wanted.model.parameters().values()));
  }
}

TEST_CASE("tokens that travel ahead come before their step and after the step they follow") {
  std::size_t waits = 0;
  for (const bool late : {false, true}) {
    StreamOrder order;
    Site site(false);
    results(site, late);
    CHECK(order.faults() == std::vector<std::string>{});
    CHECK(order.num_accesses() > 0);
    waits = order.num_waits();
  }
  // A step waits for its tokens and for the copies of a checkpoint, of which there are none here.
  REQUIRE(waits == 2 * std::size(kPlans));
  std::size_t needed = 0;
  for (std::size_t wait = 0; wait < waits; ++wait) {
    StreamOrder order;
    order.drop_wait(wait);
    Site site(false);
    results(site, /*late=*/true);
    if (!order.faults().empty()) ++needed;
  }
  CHECK(needed == std::size(kPlans));
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
