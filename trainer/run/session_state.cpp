// The part of Session that saves it and restores it.
#include <algorithm>
#include <iterator>

#include <spdlog/spdlog.h>

#include "heterogeneity/plan/sync_choice.h"
#include "outer_optimizer/schedule/fragment_schedule.h"
#include "trainer/base/checksum.h"
#include "trainer/base/error.h"
#include "trainer/checkpoint/checkpoint_folder.h"
#include "trainer/checkpoint/train_state.h"
#include "trainer/run/session.h"

namespace farstep {

// What is this site's alone: the inner optimizer's moments, what it has not sent yet, and its
// weights where they are not theta_global.
NamedBuffers Session::own_buffers(bool with_local) {
  auto buffers = inner_->pull_state();
  std::ranges::move(strategy_->own_buffers(), std::back_inserter(buffers));
  if (with_local) {
    buffers.push_back(f32_buffer("theta_local", model_->parameters().host_values().pull()));
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
                   .syncs = strategy_->syncs_done(),
                   .loss_sum = position.loss_sum,
                   .run_sequences = position.data.run_sequences,
                   .site_sequences = position.data.site_sequences,
                   .generation = network_->welcome().generation,
                   .theta_hash = checksum_text(checksum(std::as_bytes(theta))),
                   .round_seconds = timer_.elapsed_seconds(),
                   .planner = planner_->state(),
                   .strategy = strategy_->state()},
      .global = named_parameters(layout, theta),
      .outer = named_parameters(layout, strategy_->outer_momentum()),
      .site = own_buffers(!strategy_->local_is_global()),
      .run_config = to_json(run()),
      .model_config = to_hugging_face(model_->parameters().config(), run().data.sequence_length,
                                      training_data_.eos())
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
  const auto offered = resumable_checkpoints(checkpoint_root());
  const auto found = std::ranges::find_if(offered, [&](const auto& entry) {
    return load_progress(entry).syncs == network_->welcome().start_syncs;
  });
  if (found == offered.end()) {
    throw DataError(
        fmt::format("{}: the checkpoint after {} syncs has vanished since it was offered",
                    checkpoint_root().string(), network_->welcome().start_syncs));
  }
  auto& parameters = model_->parameters();
  const auto theta = strategy_->theta_global();
  TrainState state;
  state.progress = load_progress(*found);
  position = {.rounds_done = state.progress.round,
              .steps_done = state.progress.step,
              .loss_sum = state.progress.loss_sum,
              .data = {state.progress.run_sequences, state.progress.site_sequences}};
  strategy_->restore(state.progress.strategy);
  state.global = named_parameters(parameters.layout(), theta);
  state.outer = named_parameters(parameters.layout(), strategy_->outer_momentum());
  state.site = own_buffers(!strategy_->local_is_global());
  load_checkpoint(*found, state);
  if (strategy_->local_is_global()) {
    const auto local = parameters.host_values().pull();
    std::copy(theta.begin(), theta.end(), local.begin());
  }
  parameters.host_values().push();
  inner_->push_state();
  planner_->restore(state.progress.planner);
  shares_ = shares_by_uplinks(run(), planner_->sites());  // as it was decided last
  timer_.resume_round(state.progress.round_seconds);
  drop_newer_checkpoints(checkpoint_root(), *found);
  spdlog::info("resumed from {}", found->folder.string());
}

// Where this site knows the plan by which the deltas were trained.
void Session::check_work(const SyncRecord& sync) const {
  // An eager round's sync is applied a round later.
  const bool is_of_this_round = sync.id.round == position.rounds_done + 1;
  if (!is_of_this_round && !plan_before_) return;
  const auto& planned_round = is_of_this_round ? plan() : *plan_before_;
  const auto& config = strategy_->sync_config();
  for (std::size_t id = 0; id < sync.contributions.size(); ++id) {
    const auto& done = sync.contributions[id];
    const auto& planned = planned_round.sites[id];
    const bool by_steps = run().plan.round_end == RoundEnd::kSteps;
    // When the delta was taken.
    const int64_t send_step = FragmentSchedule(planned.local_steps, config.fragments,
                                               config.delay_steps, run().plan.base_steps)
                                  .send_step(sync.id.fragment);
    FARSTEP_CHECK(done.batch == planned.batch && done.round_steps <= planned.most_steps &&
                      done.round_steps >= (by_steps ? send_step : 1),
                  "site {} did {} steps of {} in round {}, but by this site's plan {} of {}: the "
                  "sites do not hold the same plan",
                  planned.site, done.round_steps, done.batch, sync.id.round, send_step,
                  planned.batch);
  }
}

void Session::learn_from(const SyncRecord& sync) {
  std::vector<RoundTiming> timings;
  for (const auto& done : sync.contributions) {
    // A site that was interrupted after its last step has timed none.
    timings.push_back({.steps = done.step_seconds > 0 ? done.round_steps : 0,
                       .batch = done.batch,
                       .micro_batch = done.micro_batch,
                       .step_seconds = done.step_seconds,
                       .overhead_seconds = done.overhead_seconds,
                       .uplink_bits_per_second = done.uplink_bits_per_second,
                       .rtt_seconds = done.rtt_seconds});
  }
  planner_->observe(timings);
}

void Session::advance_to_next_round(const std::optional<SyncRecord>& newest) {
  if (newest) check_work(*newest);
  position.data.run_sequences += total_sequences(plan());
  position.data.site_sequences += own_plan().sequences();
  ++position.rounds_done;
  position.steps_done = 0;
  position.loss_sum = 0;
  plan_before_ = plan();
  if (newest) learn_from(*newest);
  retune();
}

void Session::retune() {
  const auto change = change_of_sync(run(), planner_->sites(), model_->parameters().size(),
                                     strategy_->sync_config(), shares_);
  if (!change) return;
  strategy_->retune(change->sync, change->shares);
  shares_ = change->shares;
  const int64_t round = position.rounds_done + 1;
  recorder_.record(SyncChangeEvent{.round = round,
                                   .codec = change->sync.codec.kind,
                                   .fragments = change->sync.fragments,
                                   .delay_steps = change->sync.delay_steps,
                                   .shares = change->shares,
                                   .reason = change->reason});
  spdlog::info("from round {} on the sites sync otherwise: {}", round, change->reason);
}

}  // namespace farstep
