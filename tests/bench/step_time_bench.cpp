// How well a fit to profiled inner steps predicts one of another batch, both timed in turns, so
// that a machine whose speed drifts does not count as the fit's error.
//
//   step_time_bench SEQUENCE_LENGTH HIDDEN LAYERS MICRO_BATCH THREADS SECONDS
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include "heterogeneity/knowledge/step_time.h"
#include "heterogeneity/profile/step_times.h"
#include "trainer/base/clock.h"
#include "trainer/data/tokens/token_batch.h"
#include "trainer/inner/inner_step.h"
#include "trainer/model/llama/llama.h"

using namespace farstep;

namespace {

TokenBatch zeros(int64_t sequences, int64_t length) {
  TokenBatch batch{.sequences = sequences, .length = length, .tokens = {}};
  batch.tokens.resize(static_cast<std::size_t>(sequences * (length + 1)));
  return batch;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) {
    fmt::print(
        stderr,
        "usage: step_time_bench SEQUENCE_LENGTH HIDDEN LAYERS MICRO_BATCH THREADS SECONDS\n");
    return 2;
  }
  const int64_t length = std::atol(argv[1]), hidden = std::atol(argv[2]),
                layers = std::atol(argv[3]), micro_batch = std::atol(argv[4]);
  at::set_num_threads(std::atoi(argv[5]));
  Llama model({.vocabulary = 4096,
               .hidden = hidden,
               .intermediate = hidden / 4 * 11,
               .layers = layers,
               .heads = hidden / 32,
               .kv_heads = hidden / 32},
              at::kCPU, ComputeType::kFP32);
  model.parameters().initialise(1);
  InnerStep inner(model, {});
  const RealClock clock;
  const auto step = [&](int64_t batch, int64_t micro) {
    const double began = clock.now_seconds();
    inner.run(zeros(batch, length), micro, 0);
    return clock.now_seconds() - began;
  };

  auto steps = heterogeneity::steps_to_time(micro_batch, 4 * micro_batch);
  const std::size_t num_profiled = steps.size();
  const std::pair<int64_t, std::vector<int64_t>> more[]{{micro_batch, {2, 3, 6}},
                                                        {micro_batch * 3 / 2, {2}},
                                                        {micro_batch * 2, {2, 3, 4, 6}},
                                                        {micro_batch * 3, {2}},
                                                        {micro_batch * 4, {2, 3}}};
  for (const auto& [micro, numbers_of_passes] : more) {
    for (const int64_t passes : numbers_of_passes) {
      steps.push_back({.micro_batch = micro, .batch = passes * micro, .seconds = 0});
    }
  }
  steps =
      heterogeneity::measure_step_times(std::move(steps), step, step, std::atof(argv[6]), clock);

  const auto fit = fit_step_time(std::span(steps).first(num_profiled));
  fmt::print("{:>11} {:>5} {:>9} {:>9} {:>7} {:>9} {:>7}\n", "micro-batch", "batch", "took",
             "predicted", "off by", "line", "off by");
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const int64_t micro = steps[i].micro_batch, batch = steps[i].batch.value_or(micro);
    const double took = steps[i].seconds, predicted = fit->seconds(batch, micro),
                 line = fit->line_seconds(batch, micro);
    fmt::print("{:>11} {:>5} {:>8.4f}s {:>8.4f}s {:>+6.1f}% {:>8.4f}s {:>+6.1f}%{}\n", micro, batch,
               took, predicted, 100 * (predicted / took - 1), line, 100 * (line / took - 1),
               i < num_profiled ? "  profiled" : "");
  }
  return 0;
}
