#include "trainer/run/site_validation.h"

#include <algorithm>

#include "trainer/run/evaluate.h"

namespace farstep {

void SiteValidation::run_if_due(Run& run, int64_t sequences_before) {
  if (!is_due(run, sequences_before)) return;
  const int64_t rounds_done = run.position.rounds_done;
  run.peers.set_activity(rounds_done, 0, "evaluating");
  const auto span = run.recorder.span(SpanCause::kEvaluate, rounds_done);
  const auto& view = run.peers.view();
  swap_global_and_local(run.strategy);  // a replica's loss says little about theta_global
  const auto result = evaluate(model_, ground_.data->validation.value(),
                               {.sequence_length = run.config.data.sequence_length,
                                .windows = run.config.evaluate.windows,
                                .share = static_cast<int64_t>(view.self),
                                .num_shares = static_cast<int64_t>(view.size()),
                                .batch = run.own_plan().micro_batch});
  swap_global_and_local(run.strategy);
  run.recorder.record(
      EvaluationEvent{.round = rounds_done, .loss_sum = result.loss_sum, .tokens = result.tokens});
}

bool SiteValidation::is_due(const Run& run, int64_t sequences_before) const {
  const auto& config = run.config.evaluate;
  const int64_t rounds_done = run.position.rounds_done;
  if (config.every_rounds == 0) return false;
  if (rounds_done == 0 || rounds_done == run.config.outer.rounds) return true;
  if (config.every_rounds) return rounds_done % *config.every_rounds == 0;
  const int64_t available =
      ground_.data->validation.value().num_windows(run.config.data.sequence_length);
  return is_validation_due(sequences_before, run.position.data.run_sequences,
                           windows_taken(config.windows, available));
}

void SiteValidation::swap_global_and_local(Strategy& strategy) {
  if (strategy.local_is_global()) return;
  auto& mirror = model_.parameters().host_values();
  std::ranges::swap_ranges(mirror.pull(), strategy.theta_global());
  mirror.push();
}

}  // namespace farstep
