// A checkpoint is begun between two steps and written behind the next ones. State that inner steps
// change is copied first. State that only syncs change is written in place, and syncs wait for the
// disk.
#include "trainer/run/site_checkpoints.h"

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "heterogeneity/plan/sync_choice.h"
#include "trainer/base/checksum.h"
#include "trainer/base/error.h"
#include "trainer/checkpoint/hf_folder.h"
#include "trainer/checkpoint/train_state.h"
#include "trainer/config/strict_json.h"
#include "trainer/model/matmul/product_choice.h"

namespace farstep {

namespace {

void record(Run& run, const SavedCheckpoint& saved) {
  run.recorder.record(CheckpointEvent{.round = saved.entry.round,
                                      .step = saved.entry.step,
                                      .folder = saved.entry.folder.string(),
                                      .bytes = saved.bytes});
  spdlog::info("checkpoint {}", saved.entry.folder.string());
}

// Returns the names of the sites of the run that wrote a checkpoint of an older version.
std::vector<std::string> members_of(const Json& run_config, const CheckpointEntry& resumed) {
  std::vector<std::string> names;
  try {
    for (const auto& site : run_config.at("sites")) names.push_back(site.at("name"));
  } catch (const Json::exception& error) {
    throw DataError(
        fmt::format("{}: run.json: sites: {}", resumed.folder.string(), json_fault(error)));
  }
  return names;
}

// Returns where the rate of a checkpoint stood that an older version wrote, whose cycle is the run.
RateState rate_of_older(const Run& run, const Json& run_config, const CheckpointEntry& resumed) {
  try {
    const RateCycle cycle{
        .end = run_config.at("outer").at("rounds").get<double>(),
        .warmup_fraction = run_config.at("inner").at("warmup_fraction").get<double>()};
    return rate_state(run.config.inner.rate, cycle, static_cast<double>(resumed.round));
  } catch (const Json::exception& error) {
    throw DataError(fmt::format("{}: run.json: {}", resumed.folder.string(), json_fault(error)));
  }
}

// Returns the rounds to which the run may go back.
std::vector<int64_t> pinned_rounds(const Run& run) {
  std::vector<int64_t> rounds;
  const auto& validations = run.position.validations;
  for (const auto round : {rounds_before_decay(run.config.inner.rate, run.cycle),
                           validations.round_to_go_back_to(run.config.checkpoint.every_rounds)}) {
    if (round) rounds.push_back(*round);
  }
  return rounds;
}

}  // namespace

SiteCheckpoints::SiteCheckpoints(const RunConfig& config, const SiteGround& ground,
                                 const Task& task, SiteModel& model)
    : ground_(ground),
      task_(task),
      model_(model),
      checkpointer_(checkpoint_folders(ground.checkpoint_root(), config.checkpoint.keep),
                    config.deadlines.checkpoint_seconds) {}

NamedBuffers SiteCheckpoints::own_buffers(Run& run) {
  auto buffers = model_.inner->pull_state();
  std::ranges::move(run.strategy.own_buffers(), std::back_inserter(buffers));
  if (!run.strategy.local_is_global()) {
    buffers.push_back(f32_buffer("theta_local", model_.model->parameters().host_values().pull()));
  }
  return buffers;
}

TrainProgress SiteCheckpoints::progress_of(const Run& run) const {
  const auto& position = run.position;
  const auto& site = run.site;
  auto& strategy = run.strategy;
  const auto pending = strategy.pending_checksum();
  return {.run = run.config.name,
          .site = ground_.site.name,
          .round = position.rounds_done,
          .step = site.steps_done(),
          .syncs = strategy.syncs_done() + position.measuring_syncs,
          .loss_sum = site.loss_sum(),
          .windows = position.windows.state(),
          .site_sequences = position.site_sequences,
          .generation = run.peers.view().generation,
          .members = run.peers.view().members,
          .theta_hash = {},
          .committed_hash = pending ? checksum_text(*pending) : "",
          .is_before_syncs = strategy.is_before_syncs(),
          .round_seconds = site.timer().elapsed_seconds(),
          .step_seconds = site.timer().steps(),
          .noise = site.noise(),
          .planner = run.planner.state(),
          .strategy = strategy.state(),
          .products = measured_choice(run.config.inner.compute),
          .rate = run.rate(),
          .unvalidated_since = position.unvalidated_since,
          .validations = position.validations,
          .own_validation = position.own_validation};
}

void SiteCheckpoints::begin(Run& run) {
  // Only one is written at a time.
  finish(run);
  const auto& position = run.position;
  const auto& site = run.site;
  auto& strategy = run.strategy;
  auto progress = progress_of(run);
  auto untimed = progress;
  untimed.round_seconds = 0;
  auto moment = to_json(untimed);
  // As in the first step after a checkpoint, when a stop has no new state to save.
  if (newest_ == moment) return;
  newest_ = std::move(moment);
  const auto span = run.recorder.span(SpanCause::kCheckpoint, position.rounds_done);
  run.peers.set_activity(position.rounds_done, site.steps_done(), "saving");
  const auto& parameters = model_.model->parameters();
  auto site_buffers = model_.inner->start_snapshot(!strategy.local_is_global());
  // The sync's worker changes these buffers only after wait_until_whole().
  std::ranges::move(strategy.own_buffers(), std::back_inserter(site_buffers));
  checkpointer_.begin(
      {.state = {.progress = std::move(progress),
                 .global = named_parameters(parameters.layout(), strategy.theta_global()),
                 .outer = named_parameters(parameters.layout(), strategy.outer_momentum()),
                 .site = std::move(site_buffers),
                 .run_config = to_json(run.config),
                 .model_config = task_.config_text(),
                 .model_files = task_.model_files(),
                 .pinned_rounds = pinned_rounds(run)},
       .copy = [this] { model_.inner->copy_snapshot(); }});
}

void SiteCheckpoints::collect(Run& run) {
  if (const auto saved = checkpointer_.collect()) record(run, *saved);
}

void SiteCheckpoints::finish(Run& run) {
  if (!checkpointer_.is_under_way()) return;
  const int64_t steps_done = run.site.steps_done();
  // Between two rounds the wait belongs to the one that has ended.
  const int64_t round = run.position.rounds_done + (steps_done > 0 ? 1 : 0);
  run.peers.set_activity(round, steps_done, "waiting for the disk");
  auto span = run.recorder.span(SpanCause::kCheckpoint, round);
  const auto saved = checkpointer_.finish();
  span.finish();
  if (saved) record(run, *saved);
}

void SiteCheckpoints::leave_after(int64_t round) {
  set_aside_checkpoints_after(ground_.checkpoint_root(), round);
}

bool SiteCheckpoints::load_global(Run& run, int64_t round) {
  const auto entries = list_checkpoints(ground_.checkpoint_root());
  const auto found = std::ranges::find_if(
      entries, [&](const auto& entry) { return entry.round == round && entry.step == 0; });
  if (found == entries.end()) return false;
  auto& strategy = run.strategy;
  const auto& layout = model_.model->parameters().layout();
  try {
    farstep::load_global(*found, named_parameters(layout, strategy.theta_global()),
                         named_parameters(layout, strategy.outer_momentum()));
  } catch (const DataError& error) {
    spdlog::warn("{}", error.what());
    return false;
  }
  return true;
}

RateState SiteCheckpoints::restore(Run& run, const CheckpointEntry& resumed) {
  auto& strategy = run.strategy;
  auto& parameters = model_.model->parameters();
  const auto theta = strategy.theta_global();
  TrainState state;
  auto& progress = state.progress;
  progress = load_progress(resumed);
  ground_.require_of_run(progress, run.config.name);
  // Before the buffers are made, as it decides which of them exist.
  RunWindows windows;
  restore_progress(resumed, [&] {
    strategy.restore(progress.strategy);
    windows = RunWindows(progress.windows);
  });
  run.position = {.rounds_done = progress.round,
                  .windows = std::move(windows),
                  .site_sequences = progress.site_sequences,
                  .measuring_syncs = progress.syncs - strategy.syncs_done(),
                  .unvalidated_since = progress.unvalidated_since,
                  .validations = progress.validations,
                  .own_validation = progress.own_validation};
  state.global = named_parameters(parameters.layout(), theta);
  state.outer = named_parameters(parameters.layout(), strategy.outer_momentum());
  state.site = own_buffers(run);
  load_checkpoint(resumed, state);
  const auto rate = progress.rate ? *progress.rate : rate_of_older(run, state.run_config, resumed);
  restore_progress(resumed, [&] { require_whole(rate.cycle); });
  const auto& members = run.peers.view().members;
  const auto saved_members = progress.members.empty() ? members_of(state.run_config, resumed)
                                                      : std::move(progress.members);
  const bool same_members = std::ranges::is_permutation(members, saved_members);
  if (!same_members) {
    spdlog::warn("the checkpoint is of the sites {}, the run now has {}{}",
                 fmt::join(saved_members, ", "), fmt::join(members, ", "),
                 progress.step == 0
                     ? ""
                     : fmt::format(": round {} begins anew, without the {} steps done of it",
                                   progress.round + 1, progress.step));
  }
  if (!same_members && progress.step > 0) {
    strategy.drop_steps(parameters.host_values().pull());
    run.position.windows.withdraw(run.position.round());
    progress.step = 0;
    progress.loss_sum = progress.round_seconds = 0;
    progress.step_seconds.clear();
    progress.noise = {};
  }
  // theta_local is then not in the checkpoint.
  if (strategy.local_is_global()) {
    std::ranges::copy(theta, parameters.host_values().pull().begin());
  }
  parameters.host_values().push();
  model_.inner->push_state();
  restore_progress(resumed, [&] { run.planner.restore(progress.planner); });
  // The shares as they were last decided. For other members they are decided again.
  if (same_members) {
    run.reduction_shares =
        shares_by_uplinks(run.config.sync.shares, run.planner.sites(run.peers.view()));
  }
  run.site.resume(progress.step, progress.loss_sum, progress.round_seconds,
                  std::move(progress.step_seconds), progress.noise);
  // Whoever goes back on purpose may want what came of it.
  if (ground_.resume.from_round) {
    set_aside_checkpoints_after(ground_.checkpoint_root(), resumed.round);
  }
  // A crash later would otherwise resume from a state that this run has left.
  drop_newer_checkpoints(ground_.checkpoint_root(), resumed);
  spdlog::info("resumed from {}", resumed.folder.string());
  return rate;
}

}  // namespace farstep
