// How long training waits for a checkpoint of real size, and what writing it behind training costs.
//
//   checkpoint_bench [--preset tiny|150m] [--batch B --length T] [--steps N] [--threads N]
//                    [--with-local] [--folder FOLDER]
//
// Trains steps without a checkpoint, then as many from the moment at which one is begun, then
// writes one as it was before: while training stands still. The files are real and flushed. In the
// end the bits of training are compared with those of one that saved nothing.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "tests/bench/turns.h"
#include "trainer/base/checksum.h"
#include "trainer/checkpoint/checkpointer.h"
#include "trainer/data/tokens/token_batch.h"
#include "trainer/inner/inner_step.h"
#include "trainer/model/language/make_model.h"

using namespace farstep;

namespace {

struct Options {
  std::string preset = "150m", folder = "build/checkpoint_bench";
  int64_t batch = 1, length = 512;
  int steps = 4, threads = 2;
  bool with_local = false;
};

// A training with what a site keeps beside it.
class Training {
 public:
  Training(const Options& options, uint64_t seed)
      : options_(options),
        shape_(preset_config(options.preset == "150m" ? ModelPreset::k150M : ModelPreset::kTiny)) {
    InnerConfig config;
    config.compute = ComputeType::kBF16;
    model_ = make_model(shape_, at::kCPU, config.compute, config.step, /*recompute=*/false);
    model_->parameters().initialise(seed);
    inner_ = std::make_unique<InnerStep>(*model_, config);
    batch_ = {.sequences = options.batch, .length = options.length, .tokens = {}};
    std::minstd_rand random;
    for (int64_t i = 0; i < options.batch * (options.length + 1); ++i) {
      batch_.tokens.push_back(static_cast<int64_t>(random()) % shape_.vocabulary);
    }
    const auto values = model_->parameters().host_values().pull();
    theta_.assign(values.begin(), values.end());
    momentum_.assign(values.size(), 0.25F);
  }

  StepResult step() { return inner_->run(batch_, options_.batch, 0.5); }

  // As a site makes it.
  CheckpointRequest request(int64_t round) {
    const auto& layout = model_->parameters().layout();
    TrainState state;
    state.progress.run = "bench";
    state.progress.round = round;
    state.global = named_parameters(layout, theta_);
    state.outer = named_parameters(layout, momentum_);
    state.site = inner_->start_snapshot(options_.with_local);
    state.run_config = Json::object();
    return {.state = std::move(state), .copy = [this] { inner_->copy_snapshot(); }};
  }

  uint64_t hash_of_state() {
    StreamingChecksum checksum;
    for (const auto& buffer : inner_->pull_state()) checksum.update(buffer.bytes);
    checksum.update(std::as_bytes(model_->parameters().host_values().pull()));
    return checksum.value();
  }

  int64_t parameters() const { return model_->parameters().size(); }

 private:
  const Options options_;
  const LlamaConfig shape_;
  std::unique_ptr<TrainableModel> model_;
  std::unique_ptr<InnerStep> inner_;
  TokenBatch batch_;
  std::vector<float> theta_, momentum_;
};

std::string listed(const std::vector<double>& seconds) {
  std::string text;
  for (const double one : seconds) text += fmt::format(" {:.2f}", one);
  return text;
}

// Bits of the state after so many steps.
struct Hashes {
  uint64_t before = 0, after = 0;
  int steps_before = 0, steps_after = 0;
};

Hashes train_and_save(const Options& options) {
  const std::filesystem::path root(options.folder);
  std::filesystem::remove_all(root);
  Training training(options, 1);
  Checkpointer checkpointer(checkpoint_folders(root, 2), 600);
  training.step();
  training.step();
  // The first checkpoint takes its memory.
  checkpointer.begin(training.request(0));
  training.step();
  checkpointer.finish();

  std::vector<double> alone, beside;
  for (int i = 0; i < options.steps; ++i) alone.push_back(seconds_of([&] { training.step(); }));
  const uint64_t hash_before = training.hash_of_state();

  double begin_seconds = 0, held_seconds = 0, whole_seconds = 0;
  begin_seconds = seconds_of([&] { checkpointer.begin(training.request(1)); });
  const auto began = std::chrono::steady_clock::now();
  std::optional<SavedCheckpoint> saved;
  while (!saved || static_cast<int>(beside.size()) < options.steps) {
    beside.push_back(seconds_of([&] { held_seconds += training.step().held_seconds; }));
    if (saved) continue;
    saved = checkpointer.collect();
    if (!saved) continue;
    whole_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  }
  const double still_seconds = seconds_of([&] {
    checkpointer.begin(training.request(2));
    checkpointer.finish();
  });

  const double usual = median(alone);
  double slowed = 0;
  for (const double seconds : beside) slowed += seconds - usual;
  fmt::print("{} parameters, {:.2f} GB a checkpoint, {} x {} tokens a step\n",
             training.parameters(), static_cast<double>(saved->bytes) * 1e-9, options.batch,
             options.length);
  fmt::print("steps alone (s):  {}\nsteps beside (s): {}\n", listed(alone), listed(beside));
  fmt::print("training waits:   {:.1f} ms (begin {:.1f}, updates {:.1f})\n",
             1e3 * (begin_seconds + held_seconds), 1e3 * begin_seconds, 1e3 * held_seconds);
  fmt::print("whole within:     {:.2f} s, of which its thread takes {:.2f} s from the steps\n",
             whole_seconds, slowed - held_seconds);
  fmt::print("standing still:   {:.2f} s\n", still_seconds);
  std::filesystem::remove_all(root);
  return {.before = hash_before,
          .after = training.hash_of_state(),
          .steps_before = 3 + options.steps,
          .steps_after = static_cast<int>(beside.size())};
}

Hashes train(const Options& options, const Hashes& wanted) {
  Training training(options, 1);
  Hashes hashes;
  for (int i = 0; i < wanted.steps_before; ++i) training.step();
  hashes.before = training.hash_of_state();
  for (int i = 0; i < wanted.steps_after; ++i) training.step();
  hashes.after = training.hash_of_state();
  return hashes;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("How long training waits for a checkpoint");
  Options options;
  app.add_option("--preset", options.preset);
  app.add_option("--batch", options.batch);
  app.add_option("--length", options.length);
  app.add_option("--steps", options.steps);
  app.add_option("--threads", options.threads);
  app.add_flag("--with-local", options.with_local);
  app.add_option("--folder", options.folder);
  CLI11_PARSE(app, argc, argv);
  at::set_num_threads(options.threads);
  const auto saved = train_and_save(options);
  const auto plain = train(options, saved);
  const bool same = saved.before == plain.before && saved.after == plain.after;
  fmt::print("bits of training with and without checkpoints: {}\n",
             same ? "the same" : "DIFFERENT");
  return same ? 0 : 1;
}
