// The part of Session that saves it and restores it.
#include <spdlog/spdlog.h>

#include "trainer/base/checksum.h"
#include "trainer/base/error.h"
#include "trainer/checkpoint/checkpoint_folder.h"
#include "trainer/checkpoint/train_state.h"
#include "trainer/run/session.h"

namespace farstep {

// What is this site's alone: the inner optimizer's moments, and in mid-round its weights.
NamedBuffers Session::own_buffers(bool mid_round) {
  auto buffers = inner_->optimizer().pull_state();
  if (mid_round) {
    const auto local = model_->parameters().host_values().pull();
    buffers.push_back({.name = "theta_local",
                       .dtype = DType::kF32,
                       .shape = {static_cast<int64_t>(local.size())},
                       .bytes = std::as_writable_bytes(local)});
  }
  return buffers;
}

void Session::save_checkpoint() {
  const auto span = recorder_.span(SpanCause::kCheckpoint, position.rounds_done);
  member().set_activity(position.rounds_done, position.steps_done, "saving");
  const auto& layout = model_->parameters().layout();
  const auto theta = strategy_->theta_global();
  const TrainState state{
      .progress = {.run = run().name,
                   .site = site_.name,
                   .round = position.rounds_done,
                   .step = position.steps_done,
                   .loss_sum = position.loss_sum,
                   .run_sequences = position.data.run_sequences,
                   .site_sequences = position.data.site_sequences,
                   .generation = network_->welcome().generation,
                   .theta_hash = checksum_text(checksum(std::as_bytes(theta))),
                   .round_seconds = timer_.elapsed_seconds(),
                   .planner = planner_->state()},
      .global = named_parameters(layout, theta),
      .outer = named_parameters(layout, strategy_->outer_momentum()),
      .site = own_buffers(position.steps_done > 0),
      .run_config = to_json(run()),
      .model_config =
          to_hugging_face(model_->config(), run().data.sequence_length, training_data_.eos())
              .dump(2)};
  const auto saved = farstep::save_checkpoint(checkpoint_root(), state);
  prune_checkpoints(checkpoint_root(), run().checkpoint.keep);
  recorder_.record(CheckpointEvent{.round = position.rounds_done,
                                   .step = position.steps_done,
                                   .folder = saved.entry.folder.string(),
                                   .bytes = saved.bytes});
  spdlog::info("checkpoint {}", saved.entry.folder.string());
}

void Session::restore() {
  std::optional<CheckpointEntry> found;
  for (const auto& entry : resumable_checkpoints(checkpoint_root())) {
    if (entry.round == network_->welcome().start_round) found = entry;
  }
  if (!found) {
    throw DataError(fmt::format("{}: the checkpoint of round {} has vanished since it was offered",
                                checkpoint_root().string(), network_->welcome().start_round));
  }
  auto& parameters = model_->parameters();
  const auto theta = strategy_->theta_global();
  TrainState state;
  state.global = named_parameters(parameters.layout(), theta);
  state.outer = named_parameters(parameters.layout(), strategy_->outer_momentum());
  state.site = own_buffers(found->step > 0);
  load_checkpoint(*found, state);
  if (found->step == 0) {
    const auto local = parameters.host_values().pull();
    std::copy(theta.begin(), theta.end(), local.begin());
  }
  parameters.host_values().push();
  inner_->optimizer().push_state();
  position = {.rounds_done = state.progress.round,
              .steps_done = state.progress.step,
              .loss_sum = state.progress.loss_sum,
              .data = {state.progress.run_sequences, state.progress.site_sequences}};
  planner_->restore(state.progress.planner);
  timer_.resume_round(state.progress.round_seconds);
  drop_newer_checkpoints(checkpoint_root(), *found);
  spdlog::info("resumed from {}", found->folder.string());
}

void Session::advance_to_next_round(std::span<const Contribution> contributions) {
  std::vector<RoundTiming> timings;
  for (std::size_t id = 0; id < contributions.size(); ++id) {
    const auto& done = contributions[id];
    const auto& planned = plan().sites[id];
    const bool by_steps = run().plan.round_end == RoundEnd::kSteps;
    FARSTEP_CHECK(done.batch == planned.batch && done.steps <= planned.most_steps &&
                      done.steps >= (by_steps ? planned.local_steps : 1),
                  "site {} did {} steps of {} in round {}, but by this site's plan {} of {}: the "
                  "sites do not hold the same plan",
                  planned.site, done.steps, done.batch, position.rounds_done + 1,
                  planned.local_steps, planned.batch);
    // A site that was interrupted after its last step has timed none.
    timings.push_back({.steps = done.step_seconds > 0 ? done.steps : 0,
                       .batch = done.batch,
                       .micro_batch = done.micro_batch,
                       .step_seconds = done.step_seconds,
                       .overhead_seconds = done.overhead_seconds});
  }
  position.data.run_sequences += total_sequences(plan());
  position.data.site_sequences += own_plan().sequences();
  ++position.rounds_done;
  position.steps_done = 0;
  position.loss_sum = 0;
  planner_->observe(timings);
}

}  // namespace farstep
