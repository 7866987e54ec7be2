// Validation is of theta_global, which the model's own memory must hold for it. By default it comes
// so seldom that it takes a fixed share of the time, whatever the size of the set.
#include "trainer/run/site_validation.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "trainer/base/error.h"
#include "trainer/base/stopped.h"
#include "trainer/model/evaluate.h"
#include "trainer/round/validation.h"
#include "trainer/validation/validation_interval.h"

namespace farstep {

namespace {

// All sites validate the same theta_global, so each of them finds this in its own part. The
// checkpoint that follows a validation would save that theta_global.
void require_finite(const Validation& result, int64_t rounds_done) {
  if (std::isfinite(result.loss_sum)) return;
  throw DivergenceError(fmt::format(
      "training diverged: after round {} the validation loss of the common model is not finite. "
      "Its checkpoint is not saved; the one before may be good. A lower outer.learning_rate or "
      "inner.peak_learning_rate usually helps",
      rounds_done));
}

}  // namespace

bool SiteValidation::run_if_due(Run& run, int64_t sequences_before, const std::stop_token& stop) {
  // Others read the examples, and validate.
  if (!run.config.reads_data(run.peers.view().own_name())) return true;
  if (!is_due(run, sequences_before)) return true;
  const int64_t rounds_done = run.position.rounds_done;
  run.peers.set_activity(rounds_done, 0, "evaluating");
  const auto span = run.recorder.span(SpanCause::kEvaluate, rounds_done);
  swap_global_and_local(run);  // a replica's loss says little about theta_global
  // Each site evaluates a part of the examples, or the master alone all of them; the report adds up
  // sums and targets.
  const bool is_alone = run.config.strategy.scatter;
  std::optional<Validation> result;
  try {
    result = evaluate(model_, task_.validation(),
                      {.part = is_alone ? 0 : training_place(run),
                       .num_parts = is_alone ? 1 : num_training(run.plan()),
                       .examples = run.config.evaluate.windows,
                       .batch = run.own_plan().micro_batch},
                      stop);
  } catch (const Stopped&) {
    // Without a result; theta_local returns in any case.
  }
  swap_global_and_local(run);
  if (!result) return false;
  require_finite(*result, rounds_done);
  run.position.own_validation = {
      .round = rounds_done, .loss_sum = result->loss_sum, .targets = result->targets};
  run.recorder.record(EvaluationEvent{.round = rounds_done,
                                      .loss_sum = result->loss_sum,
                                      .tokens = result->targets,
                                      .hits = result->hits});
  return true;
}

bool SiteValidation::is_due(const Run& run, int64_t sequences_before) const {
  const auto& config = run.config.evaluate;
  const int64_t rounds_done = run.position.rounds_done;
  if (config.every_rounds == 0) return false;
  if (rounds_done == 0 || rounds_done == run.config.outer.rounds) return true;
  if (config.every_rounds) return rounds_done % *config.every_rounds == 0;
  return is_validation_due(sequences_before, run.position.windows.pool().next(),
                           examples_taken(config.windows, task_.validation().size()));
}

}  // namespace farstep
