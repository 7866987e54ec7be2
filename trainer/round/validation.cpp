#include "trainer/round/validation.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "trainer/base/error.h"

namespace farstep {

namespace {

std::vector<heterogeneity::PartialValidation> validations_of(std::span<const SyncRecord> syncs) {
  std::vector<heterogeneity::PartialValidation> parts;
  if (syncs.empty()) return parts;
  for (const auto& contribution : syncs.back().contributions) {
    if (contribution.timing.validation) parts.push_back(*contribution.timing.validation);
  }
  return parts;
}

std::string text_of(const Rise& rise) {
  return fmt::format(
      "the validation loss has risen to {:.3f} after round {}, from {:.3f} after "
      "round {}",
      rise.newest.loss, rise.newest.round, rise.best.loss, rise.best.round);
}

// Without the sites' moments and residuals: a newcomer has none either, and some of them may be the
// cause.
void go_back(Run& run, int64_t round) {
  const auto span = run.recorder.span(SpanCause::kRecovery, run.position.rounds_done);
  run.handover.wait_for_copies();
  if (!run.checkpoints.load_global(run, round)) {
    throw StaleStateError(fmt::format(
        "the run goes back to the weights after round {}, of which this site has no whole "
        "checkpoint",
        round));
  }
  const outer_optimizer::Range all{0, std::ssize(run.strategy.theta_global())};
  auto& theta = run.site.theta();
  const auto local = theta.pull(all);
  run.strategy.begin_from_global(local);
  theta.push(all, local);
  run.site.begin_anew();
}

}  // namespace

void swap_global_and_local(Run& run) {
  if (run.strategy.local_is_global()) return;
  run.handover.wait_for_copies();
  const auto global = run.strategy.theta_global();
  const outer_optimizer::Range all{0, std::ssize(global)};
  auto& theta = run.site.theta();
  const auto local = theta.pull(all);
  // Exchanged instead of copied: a third array of the model's size is not needed.
  std::ranges::swap_ranges(local, global);
  theta.push(all, local);
}

void heed_validation(Run& run, std::span<const SyncRecord> syncs) {
  auto& history = run.position.validations;
  const auto on_rise = run.config.evaluate.on_rise;
  // A resume may have changed it, and the checkpoint to go back to was not kept then.
  if (history.on_rise != on_rise) history = {.on_rise = on_rise};
  const auto rise = history.add(validations_of(syncs));
  if (!rise) return;
  const auto text = text_of(*rise);
  const auto back_to = history.round_to_go_back_to(run.config.checkpoint.every_rounds);
  const bool goes_back = on_rise == OnRise::kGoBack && back_to && !rise->is_second;
  const bool stops = on_rise != OnRise::kWarn && !goes_back;
  RiseEvent event{.round = run.position.rounds_done,
                  .validated_round = rise->newest.round,
                  .loss = rise->newest.loss,
                  .best_round = rise->best.round,
                  .best_loss = rise->best.loss,
                  .stops = stops};
  if (goes_back) event.back_to_round = back_to;
  run.recorder.record(event);
  if (stops) {
    throw DivergenceError(fmt::format(
        "{}{}. The checkpoint of this round is not saved. A lower inner.peak_learning_rate or "
        "outer.learning_rate may help: resume all sites with --from-round {} and the new setting",
        text, rise->is_second ? ", though the run went back after the rise before" : "",
        back_to.value_or(rise->best.round)));
  }
  if (!goes_back) {
    spdlog::warn("{}", text);
    return;
  }
  spdlog::warn("{}: all sites go back to the weights after round {}, and go on with other data",
               text, *back_to);
  go_back(run, *back_to);
}

}  // namespace farstep
