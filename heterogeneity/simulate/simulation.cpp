// Discrete events without an event queue: sites only meet at syncs. So each site is advanced alone
// from one sync to the next. A round of a thousand sites takes 12 to 20 ms
// (docs/results/planning.md).
#include "heterogeneity/simulate/simulation.h"

#include <algorithm>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/mix.h"

namespace farstep::heterogeneity {

namespace {

// Returns a number in [0, 1), uniformly distributed; the same key has the same number. A function
// of the key instead of a generator: the noise of a step does not depend on how many steps others
// have taken.
double noise(uint64_t key) {
  // The upper 53 bits are all that a double holds.
  return static_cast<double>(mix(key) >> 11) * 0x1p-53;
}

// Returns what the planner may know of all sites, also of those that join later.
std::vector<SiteKnowledge> known_sites(const Scenario& scenario) {
  std::vector<SiteKnowledge> known;
  for (const auto& site : scenario.sites) {
    auto& knowledge = known.emplace_back();
    knowledge.site = site.name;
    knowledge.trains = site.trains;
    if (!site.hide_profile) knowledge.profile = site.profile;
  }
  return known;
}

}  // namespace

Simulation::Simulation(Scenario scenario, std::string source)
    : scenario_(std::move(scenario)),
      source_(std::move(source)),
      network_(scenario_),
      scatter_(scenario_, network_),
      states_(scenario_.sites.size()) {
  admit_joiners();
}

const SimulatedRound& Simulation::next_round() {
  FARSTEP_CHECK(round_.round < scenario_.rounds, "the simulation is over");
  if (round_.round > 0) admit_joiners();
  ++round_.round;
  round_.planned_seconds = planner_->plan(view_).round_seconds;
  for (std::size_t i = 0; i < present_.size(); ++i) begin_round(i);
  begin_scatter();
  if (planner_->plan(view_).measuring_steps > 0) {
    const auto measuring_steps = planner_->plan(view_).measuring_steps;
    for (std::size_t i = 0; i < present_.size() && !scenario_.plan.equal_steps; ++i) {
      while (round_.sites[i].steps() < measuring_steps) take_step(i);
    }
    while (round_.sites.front().steps() < measuring_steps) step_together();
    plan_rest();
  }
  if (scenario_.plan.equal_steps) {
    while (wants_step(0)) step_together();
    const auto waited = agree();
    for (std::size_t i = 0; i < present_.size(); ++i) {
      auto& sync = round_.sites[i].syncs.front();
      sync.all.wait += waited[i];
      sync.exposed.wait += waited[i];
      sync.applied_after = round_.sites[i].steps();
    }
  } else {
    for (int64_t fragment = 0; fragment < scenario_.sync.fragments; ++fragment) sync(fragment);
  }
  learn();
  return round_;
}

// Plans for other sites if others take part in the next round than in the last.
void Simulation::admit_joiners() {
  std::vector<std::size_t> present;
  View view{.generation = round_.generation + 1, .members = {}, .self = 0};
  for (std::size_t id = 0; id < scenario_.sites.size(); ++id) {
    const auto& site = scenario_.sites[id];
    if (site.joins_at_round > round_.round + 1) continue;
    present.push_back(id);
    view.members.push_back(site.name);
  }
  if (present == present_) return;
  present_ = std::move(present);
  view_ = std::move(view);
  in_file(source_, [&] {
    if (planner_) {
      planner_->set_view(view_);
    } else {
      planner_.emplace(scenario_.plan, known_sites(scenario_), view_);
    }
  });
  // The costs are of the sites that were present.
  costs_.clear();
  for (std::size_t i = 0; i < present_.size(); ++i) {
    auto& state = states_[present_[i]];
    if (state.trained.steps == 0 && round_.round > 0) {
      // A joiner is free to begin when it hears of the commit.
      state.free_seconds = commit_seconds_ + cost_of(0).control_seconds[i];
    }
  }
  round_.sites.resize(present_.size());
  round_.generation = view_.generation;
}

void Simulation::begin_round(std::size_t index) {
  const auto id = present_[index];
  const auto& site = scenario_.sites[id];
  auto& round = round_.sites[index];
  round.site = id;
  round.start_seconds = states_[id].free_seconds;
  round.evaluate_seconds = site.evaluate_seconds;
  round.checkpoint_seconds = site.checkpoint_seconds;
  round.step_seconds.clear();
  round.measuring_plan.reset();
  round.measuring_wait_seconds = 0;
  round.syncs.clear();
  // As in a real run, evaluation and checkpoint come before the round's steps.
  states_[id].free_seconds += site.overhead_seconds();
  states_[id].longest_step_seconds = 0;
  states_[id].applied.resize(static_cast<std::size_t>(scenario_.sync.fragments));
  if (scenario_.plan.equal_steps) round.syncs.emplace_back();  // the sum of its steps
  begin_plan(index);
}

void Simulation::begin_plan(std::size_t index) {
  const auto& plan = planner_->plan(view_).sites[index];
  round_.sites[index].plan = plan;
  states_[present_[index]].schedule.emplace(plan.local_steps, scenario_.sync.fragments,
                                            scenario_.sync.delay_steps, scenario_.plan.base_steps);
}

bool Simulation::wants_step(std::size_t index) const {
  const auto& round = round_.sites[index];
  const bool by_deadline =
      scenario_.plan.round_end == RoundEnd::kDeadline && round_.planned_seconds.has_value();
  if (!by_deadline) return round.steps() < round.plan.local_steps;
  if (round.steps() == 0) return true;
  if (round.steps() >= round.plan.most_steps) return false;
  const auto& state = states_[present_[index]];
  const double elapsed_seconds = state.free_seconds - round.start_seconds;
  // If the longest step fits, the typical one does. The typical one takes longer to compute: every
  // step of a long round would sort all steps before it.
  return has_room(elapsed_seconds, state.longest_step_seconds) ||
         has_room(elapsed_seconds, typical_step_seconds(round.step_seconds));
}

// Returns the time of a step of the site's plan without jitter.
double Simulation::true_step_seconds(std::size_t index) {
  const auto& site = scenario_.sites[present_[index]];
  const auto& plan = round_.sites[index].plan;
  auto& state = states_[present_[index]];
  if (!plan.trains()) return 0;
  // Prediction from a profile costs more than a step of the simulation, and batches rarely change.
  if (plan.batch != state.batch || plan.micro_batch != state.micro_batch) {
    SiteKnowledge truth;
    truth.profile = site.profile;
    state.true_step_seconds = *step_seconds(truth, plan.batch, plan.micro_batch);
    state.batch = plan.batch;
    state.micro_batch = plan.micro_batch;
  }
  return state.true_step_seconds * site.speed_times(round_.round);
}

void Simulation::take_step(std::size_t index) {
  const auto id = present_[index];
  auto& round = round_.sites[index];
  auto& state = states_[id];
  // A pure function of seed, site, round and step: the order in which sites are simulated changes
  // nothing.
  const uint64_t key = mix(mix(mix(static_cast<uint64_t>(scenario_.seed)) + id) +
                           static_cast<uint64_t>(round_.round));
  const double spread = 2 * noise(key + static_cast<uint64_t>(round.steps())) - 1;
  const double seconds = true_step_seconds(index) * (1 + scenario_.sites[id].jitter * spread);
  round.step_seconds.push_back(seconds);
  state.free_seconds += seconds;
  state.longest_step_seconds = std::max(state.longest_step_seconds, seconds);
  ++state.trained.steps;
  state.trained.tokens += round.plan.batch * *scenario_.sequence_length;
}

void Simulation::train_until(std::size_t index, int64_t step) {
  // A sync at the last planned step waits for the round's end, which a deadline may put elsewhere.
  const auto& round = round_.sites[index];
  while (round.steps() < step || step >= round.plan.local_steps) {
    if (!wants_step(index)) return;
    take_step(index);
  }
}

double Simulation::go_seconds(const SyncCost& cost) const {
  double seconds = 0;
  for (std::size_t i = 0; i < present_.size(); ++i) {
    seconds = std::max(seconds, states_[present_[i]].free_seconds + cost.control_seconds[i]);
  }
  return seconds;
}

void Simulation::begin_scatter() {
  if (!scenario_.plan.equal_steps) return;
  std::vector<int64_t> batches;
  for (const auto& site : round_.sites) batches.push_back(site.plan.batch);
  scatter_.plan(batches);
  scatter_.send(states_[scenario_.master()].free_seconds);
}

// The waits and the exchanges of all steps of a round add up in one sync, as it is recorded. All
// sites are there: a site's index is its id.
void Simulation::step_together() {
  // As EmulatedBackward divides a step: forward has one product for each weight, backward two.
  constexpr double kBackwardShare = 2.0 / 3;
  const auto& cost = cost_of(0);
  double ended = 0;  // the backward of all
  double slowest_seconds = 0;
  double batches = 0;
  const double began = states_[scenario_.master()].free_seconds;  // at the master
  for (std::size_t i = 0; i < present_.size(); ++i) {
    auto& sync = round_.sites[i].syncs.front();
    auto& free_seconds = states_[present_[i]].free_seconds;
    const double late = std::max(0.0, scatter_.arrival_seconds(i) - free_seconds);
    free_seconds += late;
    sync.all.wait += late;
    sync.exposed.wait += late;
    sync.sent_bytes += scatter_.sent_bytes(i);
    sync.received_bytes += scatter_.received_bytes(i);
    take_step(i);
    ended = std::max(ended, states_[present_[i]].free_seconds);
    slowest_seconds = std::max(slowest_seconds, round_.sites[i].step_seconds.back());
    batches += static_cast<double>(round_.sites[i].plan.batch);
  }
  const double last_bucket = std::min(
      1.0, static_cast<double>(scenario_.strategy.bucket_bytes) /
               (sizeof(float) * static_cast<double>(std::max<int64_t>(1, *scenario_.parameters))));
  const bool has_master = traits_of(scenario_.strategy.kind).has_master;
  const auto after = [&](std::size_t i) { return has_master ? cost.back_seconds[i] : 0; };
  const auto exposed_sum = [&](std::size_t i) {
    const double overlapping = cost.exchange_seconds[i] - after(i);
    return std::max(last_bucket * overlapping,
                    overlapping - (1 - last_bucket) * kBackwardShare * slowest_seconds);
  };
  double queued = 0;  // the values, behind the batches of the next step
  if (round_.sites.front().steps() < planned_steps()) {
    scatter_.send(began);
    queued = std::max(0.0, scatter_.line_free_seconds() - ended - exposed_sum(scenario_.master()));
  }
  for (std::size_t i = 0; i < present_.size(); ++i) {
    auto& state = states_[present_[i]];
    auto& sync = round_.sites[i].syncs.front();
    const double exposed = exposed_sum(i) + queued + after(i);
    const double waited = ended - state.free_seconds;
    sync.all.wait += waited;
    sync.exposed.wait += waited;
    sync.all.exchange += cost.exchange_seconds[i] + queued;
    sync.exposed.exchange += exposed;
    sync.averaging_weight = static_cast<double>(round_.sites[i].plan.batch) / batches;
    sync.sent_bytes += cost.sent_bytes[i];
    sync.received_bytes += cost.received_bytes[i];
    state.free_seconds = ended + exposed;
  }
}

// Go travels to a site, all votes to the coordinator, and the commit to the site.
std::vector<double> Simulation::agree() {
  const auto& control_seconds = cost_of(0).control_seconds;
  commit_seconds_ = go_seconds(cost_of(0)) + 2 * *std::ranges::max_element(control_seconds);
  std::vector<double> waited;
  for (std::size_t i = 0; i < present_.size(); ++i) {
    auto& state = states_[present_[i]];
    const double committed = commit_seconds_ + control_seconds[i];
    waited.push_back(committed - state.free_seconds);
    state.free_seconds = committed;
  }
  return waited;
}

// Plans the rest of the round: the measured sites arrive and vote first.
void Simulation::plan_rest() {
  std::vector<RoundTiming> timings;
  const auto waited = agree();
  // As in a real run the first step is left out. Other overhead is not known yet.
  for (std::size_t i = 0; i < present_.size(); ++i) {
    auto& round = round_.sites[i];
    round.measuring_plan = round.plan;
    timings.push_back({.steps = round.steps(),
                       .batch = round.plan.batch,
                       .micro_batch = round.plan.micro_batch,
                       .step_seconds = measured_step_seconds(round.step_seconds)});
    round.measuring_wait_seconds = waited[i];
  }
  planner_->plan_rest(view_, timings);
  round_.planned_seconds = planner_->plan(view_).round_seconds;
  for (std::size_t i = 0; i < present_.size(); ++i) {
    begin_plan(i);
    // As in a real run, no sync is due before the next step.
    if (!scenario_.plan.equal_steps && wants_step(i)) take_step(i);
  }
  begin_scatter();
}

int64_t Simulation::planned_steps() const {
  const auto measuring_steps = planner_->plan(view_).measuring_steps;
  return measuring_steps > 0 ? measuring_steps : round_.sites.front().plan.local_steps;
}

bool Simulation::has_room(double elapsed_seconds, double step_seconds) const {
  const double round_seconds = *round_.planned_seconds;
  return has_room_for_step(round_seconds, elapsed_seconds, step_seconds,
                           scenario_.plan.slack_fraction * round_seconds);
}

// Fragments differ by a value at most, so there are two sizes, and 1,000 sites have a million ways.
const SyncCost& Simulation::cost_of(int64_t fragment) {
  const auto range = outer_optimizer::equal_part(*scenario_.parameters, static_cast<int>(fragment),
                                                 static_cast<int>(scenario_.sync.fragments));
  const bool is_fine = scenario_.sync.is_fine(round_.round, scenario_.rounds);
  auto& cost = costs_[{range.size(), is_fine}];
  if (!cost) cost = network_.sync_cost(present_, range.size(), is_fine);
  return *cost;
}

std::vector<double> Simulation::coefficients(int64_t fragment) const {
  std::vector<outer_optimizer::Work> works;
  for (std::size_t i = 0; i < present_.size(); ++i) {
    const auto& state = states_[present_[i]];
    const auto& before = state.applied[static_cast<std::size_t>(fragment)];
    works.push_back({.steps = state.trained.steps - before.steps,
                     .batch = round_.sites[i].plan.batch,
                     .tokens = state.trained.tokens - before.tokens,
                     .missing_steps = round_.sites[i].plan.left_out_steps});
  }
  return averaging_coefficients(scenario_.averaging, works);
}

// Simulates the sync of one fragment. All sites do it together, so each site can be advanced from
// send to apply before the next fragment.
void Simulation::sync(int64_t fragment) {
  const auto& cost = cost_of(fragment);
  for (std::size_t i = 0; i < present_.size(); ++i) {
    // Training goes on between send and apply, so all sends of a fragment come before its go.
    train_until(i, states_[present_[i]].schedule->send_step(fragment));
  }
  const auto weights = coefficients(fragment);
  const double go = go_seconds(cost);  // at the coordinator, like the commit
  const double outer_seconds =
      scenario_.outer_seconds / static_cast<double>(scenario_.sync.fragments);
  std::vector<double> voted;
  for (std::size_t i = 0; i < present_.size(); ++i) {
    voted.push_back(go + cost.control_seconds[i] + cost.exchange_seconds[i] + outer_seconds);
  }
  commit_seconds_ = 0;
  for (std::size_t i = 0; i < present_.size(); ++i) {
    commit_seconds_ = std::max(commit_seconds_, voted[i] + cost.control_seconds[i]);
  }
  for (std::size_t i = 0; i < present_.size(); ++i) {
    auto& state = states_[present_[i]];
    auto& round = round_.sites[i];
    const double sent = state.free_seconds;
    const double committed = commit_seconds_ + cost.control_seconds[i];
    train_until(i, state.schedule->apply_step(fragment));
    SiteSync sync{.fragment = fragment,
                  .applied_after = round.steps(),
                  .all = {.wait = go + cost.control_seconds[i] - sent,
                          .exchange = cost.exchange_seconds[i],
                          .outer = outer_seconds,
                          // The vote's time is from the end of the own exchange to the commit.
                          .vote = committed - voted[i]},
                  .averaging_weight = weights[i],
                  .sent_bytes = cost.sent_bytes[i],
                  .received_bytes = cost.received_bytes[i]};
    sync.exposed = exposed_part(sync.all, state.free_seconds - sent);
    round.syncs.push_back(sync);
    state.applied[static_cast<std::size_t>(fragment)] = state.trained;
    // A site that comes after the commit waits for nothing.
    state.free_seconds = std::max(state.free_seconds, committed);
  }
}

// Passes the planner the timings that the sites of a real run would send.
void Simulation::learn() {
  std::vector<RoundTiming> timings;
  for (std::size_t i = 0; i < present_.size(); ++i) {
    const auto& site = round_.sites[i];
    timings.push_back({.steps = site.steps(),
                       .batch = site.plan.batch,
                       .micro_batch = site.plan.micro_batch,
                       .step_seconds = typical_step_seconds(site.step_seconds),
                       .overhead_seconds = site.evaluate_seconds + site.checkpoint_seconds});
  }
  planner_->observe(view_, timings);
}

}  // namespace farstep::heterogeneity
