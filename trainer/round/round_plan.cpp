// What one part of the run needs of another passes through here, as values. The order in
// plan_after_round() matters. Windows return by the old plan, then the view changes, then the
// planner learns, and the sync is chosen from what it has learned.
#include "trainer/round/round_plan.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>

#include "heterogeneity/plan/plan_report.h"
#include "heterogeneity/plan/sync_choice.h"

namespace farstep {

namespace {

// Returns what all sites draw from here on. The sequential order counts a site's sequences in
// earlier rounds, and a site knows only its own count.
StepDraws step_draws(const Run& run) {
  const auto& plan = run.plan();
  const int64_t steps_done = run.site.steps_done();
  const int64_t last_step =
      plan.measuring_steps > 0 ? plan.measuring_steps : run.own_plan().local_steps;
  StepDraws draws{.round = run.position.round(),
                  .steps_done = steps_done,
                  .steps = std::max<int64_t>(0, last_step - steps_done),
                  .view = run.peers.view(),
                  .sites = {}};
  RoundRange range{.pool = run.position.windows.pool(), .num_members = num_training(plan)};
  for (const auto& site : plan.sites) {
    // Windows before steps_before were counted as taken when the round was planned anew.
    draws.sites.push_back({.range = range,
                           .first = (steps_done - site.steps_before) * site.batch,
                           .batch = site.batch});
    range.offset += site.sequences();
    if (site.trains()) ++range.place;
  }
  draws.sites[draws.view.self].range.site_sequences = run.position.site_sequences;
  return draws;
}

SiteWork site_work(const Run& run) {
  const auto& plan = run.plan();
  const auto& config = run.config.plan;
  SiteWork work{.round = run.position.round(),
                .rounds = run.config.outer.rounds,
                .plan = run.own_plan(),
                .draws = step_draws(run),
                .is_measuring = plan.measuring_steps > 0,
                .rate = run.config.inner.rate,
                .cycle = run.cycle};
  work.learning_rate_factor = run.planner.learning_rate_factor();
  // Without predicted times there is no deadline, and the round ends by steps.
  if (config.round_end == heterogeneity::RoundEnd::kDeadline && plan.round_seconds) {
    work.deadline_seconds = plan.round_seconds;
    work.slack_seconds = config.slack_fraction * *plan.round_seconds;
  }
  return work;
}

RoundStart round_start(Run& run) {
  const auto& plan = run.plan();
  return {.round = run.position.round(),
          .view = run.peers.view(),
          .planned = planned_work(run.config, plan),
          .tokens_per_step = run.own_plan().batch * run.config.targets_per_example(),
          .is_measuring = plan.measuring_steps > 0,
          .exchanges = &run.peers.exchanges(),
          .theta = &run.site.theta(),
          .gradients = run.strategy.gradients() ? run.site.gradients() : std::span<float>()};
}

std::string reason_of_work(const Run& run) {
  const int64_t base_batch = run.planner.base_batch(), first = run.config.plan.base_batch;
  const auto& reason = run.own_plan().reason;
  if (base_batch == first) return reason;
  return fmt::format("{}; the base batch has grown from {} to {}", reason, first, base_batch);
}

// Says what the run will give, once: as soon as the step times of all sites are known.
void tell_forecast(Run& run) {
  const auto& plan = run.plan();
  if (run.has_told_forecast || plan.measuring_steps > 0 || !plan.round_seconds) return;
  run.has_told_forecast = true;
  heterogeneity::ForecastSettings settings{.plan = run.config.plan,
                                           .averaging = run.config.outer.averaging,
                                           .sync = run.strategy.sync_config(),
                                           .parameters = run.parameters,
                                           .sequence_length = {}};
  settings.plan.base_batch = run.planner.base_batch();
  if (!run.config.is_of_images()) settings.sequence_length = run.config.targets_per_example();
  const auto forecast = forecast_of(settings, run.planner.sites(run.peers.view()), plan);
  if (const auto line = forecast_line(forecast); !line.empty()) spdlog::info("{}", line);
  for (const auto& warning : forecast.warnings) spdlog::warn("{}", warning);
}

ViewEvent view_event(int64_t round, const wan::ViewMessage& view) {
  ViewEvent event{.round = round, .generation = view.generation, .members = view.sites};
  // The message repeats the last loss when a site joins.
  if (view.lost_generation == view.generation) {
    if (!view.lost.empty()) event.lost = view.lost;
    if (!view.reason.empty()) event.reason = view.reason;
  } else if (!view.joined.empty()) {
    event.joined = view.joined;
  }
  return event;
}

// Returns the steps of each member whose windows are not to be trained on again. A delta that is
// sent before the round's end does not tell how many steps follow it: then that is all of the plan,
// unless the member only attends the round.
std::map<std::string, int64_t> merged_steps(const Run& run, const SyncRecord& sync) {
  const bool is_whole = run.strategy.sync_config().delay_steps == 0;
  std::map<std::string, int64_t> steps;
  for (std::size_t place = 0; place < sync.members.size(); ++place) {
    const auto& timing = sync.contributions[place].timing;
    const bool is_known = is_whole || timing.is_leaving || timing.steps == 0;
    steps[sync.members[place]] = is_known ? timing.steps : heterogeneity::kMostWork;
  }
  return steps;
}

}  // namespace

std::vector<PlannedWork> planned_work(const RunConfig& config,
                                      const heterogeneity::RoundPlan& plan) {
  std::vector<PlannedWork> planned;
  for (const auto& site : plan.sites) {
    planned.push_back({.site = site.site,
                       .batch = site.batch,
                       .local_steps = site.local_steps,
                       .most_steps = site.most_steps,
                       .left_out_steps = site.left_out_steps,
                       .ends_by_steps = config.plan.round_end == heterogeneity::RoundEnd::kSteps});
  }
  return planned;
}

heterogeneity::RoundTiming timing_of(const Run& run) {
  auto timing = run.site.timing();
  const auto uplink = run.peers.uplink();
  timing.uplink_bits_per_second = uplink.bits_per_second.value_or(0);
  timing.rtt_seconds = uplink.state.rtt_seconds;
  timing.validation = run.position.own_validation;
  return timing;
}

bool begin_round(Run& run, RoundRecord& record, const std::stop_token& stop) {
  tell_forecast(run);
  const auto& plan = run.own_plan();
  run.recorder.record(PlanEvent{.round = run.position.round(),
                                .local_steps = plan.local_steps,
                                .batch = plan.batch,
                                .micro_batch = plan.micro_batch,
                                .reason = reason_of_work(run),
                                .step_seconds = plan.step_seconds,
                                .idle_seconds = plan.idle_seconds});
  run.site.begin(site_work(run));
  const auto synced = run.strategy.begin(round_start(run), timing_of(run), stop);
  if (synced.begins_anew) run.site.begin_anew();
  return record.add(synced);
}

void reserve_windows(Run& run, const heterogeneity::RoundPlan& plan) {
  for (const auto& site : plan.sites) {
    if (!site.trains()) continue;
    run.position.windows.reserve(run.position.round(), site.site, site.steps_before, site.batch,
                                 site.sequences());
  }
}

void count_sequences(Run& run) {
  reserve_windows(run, run.plan());
  run.position.site_sequences += run.own_plan().sequences();
}

void adopt_view(Run& run, int64_t round, int64_t generation,
                const std::vector<std::string>& members) {
  if (!run.peers.adopt(generation, members)) return;
  for (const auto& view : run.peers.take_new_views()) {
    // A newcomer hears of the changes before it is a member; they belong to earlier rounds.
    if (std::ranges::find(view.sites, run.peers.view().own_name()) == view.sites.end()) continue;
    run.recorder.record(view_event(round, view));
  }
  run.planner.set_view(run.peers.view());
  run.reduction_shares.clear();  // they were by place
}

void plan_next_round(Run& run, std::span<const SyncRecord> syncs) {
  count_sequences(run);
  plan_after_round(run, syncs);
}

void plan_after_round(Run& run, std::span<const SyncRecord> syncs) {
  ++run.position.rounds_done;
  // What a lost site had, or a deadline has left, is the first that the next round takes.
  for (const auto& sync : syncs) {
    run.position.windows.settle(sync.id.round, merged_steps(run, sync));
  }
  if (!syncs.empty()) {
    // With eager updates the first round ends without figures of the sites.
    const auto& newest = syncs.back();
    adopt_view(run, newest.id.round, newest.generation, newest.members);
    const int64_t base_batch = run.planner.base_batch();
    run.planner.observe({.generation = newest.generation, .members = newest.members},
                        timings_of(newest.contributions));
    if (run.planner.base_batch() > base_batch) {
      spdlog::info(
          "from round {} on the base batch is {} instead of {}, by the gradient noise scale",
          run.position.round(), run.planner.base_batch(), base_batch);
    }
  } else {
    run.planner.keep_plan();
  }
  // After the planner has learned, since the sync is chosen from its figures.
  retune(run);
}

void retune(Run& run) {
  const auto change =
      change_of_sync(run.config.plan, run.config.sync.shares, run.planner.sites(run.peers.view()),
                     run.parameters, run.strategy.sync_config(), run.reduction_shares);
  if (!change) return;
  run.strategy.retune(change->sync, change->shares);
  run.reduction_shares = change->shares;
  const int64_t round = run.position.round();
  run.recorder.record(SyncChangeEvent{.round = round,
                                      .codec = change->sync.codec.kind,
                                      .fragments = change->sync.fragments,
                                      .delay_steps = change->sync.delay_steps,
                                      .shares = change->shares,
                                      .reason = change->reason});
  spdlog::info("from round {} on the sites sync otherwise: {}", round, change->reason);
}

std::vector<heterogeneity::RoundTiming> timings_of(
    std::span<const wan::Contribution> contributions) {
  std::vector<heterogeneity::RoundTiming> timings;
  for (const auto& contribution : contributions) timings.push_back(contribution.timing);
  return timings;
}

}  // namespace farstep
