#include "heterogeneity/simulate/simulation.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "outer_optimizer/schedule/averaging.h"
#include "trainer/base/error.h"
#include "trainer/base/mix.h"

namespace farstep {

namespace {

// From 0 up to 1, evenly spread, the same for the same key.
double noise(uint64_t key) {
  return static_cast<double>(mix(key) >> 11) * 0x1p-53;
}

double speed_times(const ScenarioSite& site, int64_t round) {
  double times = 1;
  for (const auto& change : site.speed) {
    if (change.round <= round) times = change.times;
  }
  return times;
}

}  // namespace

TimeUse SiteRound::time() const {
  TimeUse use;
  use.compute_seconds = std::accumulate(step_seconds.begin(), step_seconds.end(), 0.0);
  use.seconds(SpanCause::kEvaluate) = evaluate_seconds;
  use.seconds(SpanCause::kCheckpoint) = checkpoint_seconds;
  use.seconds(SpanCause::kWait) = wait_seconds;
  use.seconds(SpanCause::kWan) = exchange_seconds + vote_seconds;
  use.seconds(SpanCause::kOuter) = outer_seconds;
  return use;
}

Simulation::Simulation(Scenario scenario, std::string source)
    : scenario_(std::move(scenario)),
      source_(std::move(source)),
      network_(scenario_),
      states_(scenario_.sites.size()) {
  admit_joiners();
}

const SimulatedRound& Simulation::next_round() {
  FARSTEP_CHECK(round_.round < scenario_.rounds, "the simulation is over");
  if (round_.round > 0) admit_joiners();
  ++round_.round;
  round_.planned_seconds = planner_->plan().round_seconds;
  for (std::size_t i = 0; i < present_.size(); ++i) take_steps(i);
  synchronise();
  learn();
  return round_;
}

// Plans for those who take part in the round to come, if they are not the same as before.
void Simulation::admit_joiners() {
  std::vector<SiteKnowledge> known;
  std::vector<std::size_t> present;
  for (std::size_t id = 0; id < scenario_.sites.size(); ++id) {
    const auto& site = scenario_.sites[id];
    if (site.joins_at_round > round_.round + 1) continue;
    present.push_back(id);
    const auto& timing = states_[id].timing;
    auto& knowledge = known.emplace_back();
    knowledge.site = site.name;
    if (!site.hide_profile) knowledge.profile = site.profile;
    if (!scenario_.plan.replan || timing.steps == 0) continue;
    knowledge.seen = SeenStep{timing.batch, timing.micro_batch, timing.step_seconds};
    knowledge.overhead_seconds = timing.overhead_seconds;
  }
  if (present == present_) return;
  planner_.emplace(scenario_.plan, std::move(known), source_);
  sync_ = network_.sync_cost(present);
  for (std::size_t i = 0; i < present.size(); ++i) {
    auto& state = states_[present[i]];
    if (state.timing.steps == 0 && round_.round > 0) {
      state.free_seconds = commit_seconds_ + sync_.control_seconds[i];
    }
  }
  present_ = std::move(present);
  round_.sites.resize(present_.size());
  ++round_.generation;
}

double Simulation::mean_step_seconds(std::size_t id, const SitePlan& plan) {
  const auto& site = scenario_.sites[id];
  auto& state = states_[id];
  if (plan.batch != state.batch || plan.micro_batch != state.micro_batch) {
    SiteKnowledge truth;
    truth.profile = site.profile;
    state.true_step_seconds = *step_seconds(truth, plan.batch, plan.micro_batch);
    state.batch = plan.batch;
    state.micro_batch = plan.micro_batch;
  }
  return state.true_step_seconds * speed_times(site, round_.round);
}

void Simulation::take_steps(std::size_t index) {
  const auto id = present_[index];
  const auto& site = scenario_.sites[id];
  const auto& plan = planner_->plan().sites[index];
  auto& round = round_.sites[index];
  round.site = id;
  round.plan = plan;
  round.start_seconds = states_[id].free_seconds;
  round.evaluate_seconds = site.evaluate_seconds;
  round.checkpoint_seconds = site.checkpoint_seconds;
  round.step_seconds.clear();

  const bool by_deadline =
      scenario_.plan.round_end == RoundEnd::kDeadline && round_.planned_seconds;
  const int64_t most_steps = by_deadline ? plan.most_steps : plan.local_steps;
  const double mean_seconds = mean_step_seconds(id, plan);
  const uint64_t key = mix(mix(mix(static_cast<uint64_t>(scenario_.seed)) + id) +
                           static_cast<uint64_t>(round_.round));
  double elapsed_seconds = site.overhead_seconds();
  double longest_seconds = 0;
  while (round.steps() < most_steps) {
    // As long as the longest step has room, so has the typical one, which takes longer to find.
    if (by_deadline && !has_room(elapsed_seconds, longest_seconds) && round.steps() > 0 &&
        !has_room(elapsed_seconds, typical_step_seconds(round.step_seconds))) {
      break;
    }
    const double spread = 2 * noise(key + static_cast<uint64_t>(round.steps())) - 1;
    round.step_seconds.push_back(mean_seconds * (1 + site.jitter * spread));
    elapsed_seconds += round.step_seconds.back();
    longest_seconds = std::max(longest_seconds, round.step_seconds.back());
  }
}

bool Simulation::has_room(double elapsed_seconds, double step_seconds) const {
  const double round_seconds = *round_.planned_seconds;
  return has_room_for_step(round_seconds, elapsed_seconds, step_seconds,
                           scenario_.plan.slack_fraction * round_seconds);
}

// From the arrivals to the commit.
void Simulation::synchronise() {
  std::vector<Work> works;
  double go_seconds = 0;  // at the coordinator, like the commit
  for (std::size_t i = 0; i < present_.size(); ++i) {
    const auto& site = round_.sites[i];
    const int64_t sequences = site.steps() * site.plan.batch;
    works.push_back({site.steps(), site.plan.batch, sequences * *scenario_.sequence_length});
    const double arrival = site.start_seconds + site.time().compute_seconds +
                           site.evaluate_seconds + site.checkpoint_seconds;
    states_[present_[i]].free_seconds = arrival;
    go_seconds = std::max(go_seconds, arrival + sync_.control_seconds[i]);
  }
  const auto coefficients = averaging_coefficients(scenario_.averaging, works);
  commit_seconds_ = 0;
  for (std::size_t i = 0; i < present_.size(); ++i) {
    auto& site = round_.sites[i];
    auto& state = states_[present_[i]];
    site.averaging_weight = coefficients[i];
    site.sent_bytes = sync_.sent_bytes[i];
    site.received_bytes = sync_.received_bytes[i];
    site.wait_seconds = go_seconds + sync_.control_seconds[i] - state.free_seconds;
    site.exchange_seconds = sync_.exchange_seconds[i];
    site.outer_seconds = scenario_.outer_seconds;
    state.free_seconds =
        go_seconds + sync_.control_seconds[i] + site.exchange_seconds + site.outer_seconds;
    commit_seconds_ = std::max(commit_seconds_, state.free_seconds + sync_.control_seconds[i]);
  }
  for (std::size_t i = 0; i < present_.size(); ++i) {
    auto& state = states_[present_[i]];
    const double commit_seconds = commit_seconds_ + sync_.control_seconds[i];
    round_.sites[i].vote_seconds = commit_seconds - state.free_seconds;
    state.free_seconds = commit_seconds;
  }
}

// Tells the planner what the sites of a real run would.
void Simulation::learn() {
  std::vector<RoundTiming> timings;
  for (std::size_t i = 0; i < present_.size(); ++i) {
    const auto& site = round_.sites[i];
    timings.push_back({.steps = site.steps(),
                       .batch = site.plan.batch,
                       .micro_batch = site.plan.micro_batch,
                       .step_seconds = typical_step_seconds(site.step_seconds),
                       .overhead_seconds = site.evaluate_seconds + site.checkpoint_seconds});
    states_[present_[i]].timing = timings.back();
  }
  planner_->observe(timings);
}

}  // namespace farstep
