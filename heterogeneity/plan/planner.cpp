// Feedback control of the sites' work. Every round shows how long a step takes at each site. The
// next plan gives all sites steps that end together by these times. What the sites report is
// filtered first: the constants below keep noise and accidents out of the plan and let real changes
// in.
//
// All sites run this code on the same figures. So nothing in it may depend on a clock, an address
// or the order of a hash map.
#include "heterogeneity/plan/planner.h"

#include <algorithm>
#include <cmath>

#include "heterogeneity/plan/planner_state.h"
#include "heterogeneity/policy/batch_growth.h"
#include "heterogeneity/policy/round_bound.h"
#include "heterogeneity/policy/round_length.h"

namespace farstep::heterogeneity {

namespace {

// A step time that differs by less is noise and counts by half. That reduces the variance of
// independent noise to a third. A larger difference counts in full, so a site that slows down is
// balanced one round later. After a drop to half 0.38 % was waiting (docs/results/planning.md).
// With a larger kNoise a small change of speed takes several rounds to be believed. With a smaller
// one the plan follows noise.
constexpr double kNoise = 0.05;
constexpr double kNoiseWeight = 0.5;
// Bounds the damage of one wrong figure, such as that of a process that was paused. A site that is
// really 16 times slower is known after two rounds.
constexpr double kMostChange = 4;  // of a step time, or of the other time, in one round
// Too many steps make all sites wait, too few only one. So a step time that falls by more must fall
// in two rounds, and the longer of the two counts. On a busy machine one round showed a quarter of
// the true time: the site was planned 68 steps for 19, and the others waited for half a minute.
constexpr double kMostFall = 2.0 / 3;
// Evaluation and checkpoints come in some rounds only. The average plans for their mean over the
// last rounds. No measurement chose this weight; a smaller one takes more rounds to follow a
// change.
constexpr double kOverheadWeight = 0.5;
// A site that was frozen, or waited for a full disk, had much more time besides its steps than it
// will have again. The others would fill it with thousands of steps. So a round may show no more
// than this share of its steps' time, until earlier rounds had as much. A lasting overhead is known
// after a few rounds.
constexpr double kMostNewOverhead = 0.25;
// Link figures that differ by less count as equal. A sync is planned for a line that is slower by
// as much (kCarefulSpeed in sync_plan.cpp), so it stays right meanwhile.
constexpr double kLinkNoise = 0.2;
// On a local network a fifth of a round trip is less than the delay of a thread that wakes up.
constexpr double kRttNoiseSeconds = 0.002;
// Steps that measure unknown sites. The first is left out, since a device makes its allocations in
// it. One of the others may be a hiccup. Fast sites wait for as many steps of the slowest, once in
// a run: 3.3 % of the first round of the quickstart (docs/results/quickstart.md).
constexpr int64_t kMeasuringSteps = 4;
// Share of the sites' time that a change of the work must save. Noise of the step times moves the
// best plan by a step here and there. With 0 it would change in every round; a larger value keeps
// plans that waste more.
constexpr double kWorthwhileSaving = 0.003;

// Sets `known` to a measured figure (0: none), if that is the first or differs by more than `noise`
// and more than kLinkNoise. The known value stays as it was instead of moving a little. Every sync
// is chosen from it, and a value that creeps would change the choice.
void learn_link(std::optional<double>& known, double measured, double noise) {
  if (measured == 0) return;
  if (!known || std::abs(measured - *known) > std::max(noise, kLinkNoise * *known)) {
    known = measured;
  }
}

// Returns the work of a site that has a part in the plan.
SitePlan& work_of(RoundPlan& plan, const std::string& site) {
  return *std::ranges::find(plan.sites, site, &SitePlan::site);
}

bool same_loads(const RoundPlan& a, const RoundPlan& b) {
  return std::equal(a.sites.begin(), a.sites.end(), b.sites.begin(), b.sites.end(),
                    [](const SitePlan& one, const SitePlan& other) {
                      return one.batch == other.batch && one.micro_batch == other.micro_batch;
                    });
}

// Returns the predicted idle time as a share of all sites' time.
double idle_share(const RoundPlan& plan) {
  return *total_idle_seconds(plan) /
         (*plan.round_seconds * static_cast<double>(num_training(plan)));
}

// A plan at its bound is not made anew for noise of a few percent.
bool keeps_bounds(const PlanConfig& config, const RoundPlan& plan, double least_seconds) {
  if (config.equal_steps) return true;
  const int64_t most_steps = most_local_steps(config);
  if (std::ranges::any_of(plan.sites,
                          [&](const SitePlan& work) { return work.local_steps > most_steps; })) {
    return false;
  }
  return !config.round_seconds ||
         *plan.round_seconds <=
             (1 + kRoundTolerance) * std::max(*config.round_seconds, least_seconds);
}

// Batches must be equal where sites may take different steps: there a larger batch is chosen for
// its tokens a second, which idle time does not show.
bool is_as_good(const PlanConfig& config, const RoundPlan& current, const RoundPlan& fresh) {
  return current.round_seconds && fresh.round_seconds &&
         (config.equal_steps || same_loads(current, fresh)) &&
         keeps_bounds(config, current, *fresh.round_seconds) &&
         idle_share(current) <= idle_share(fresh) + kWorthwhileSaving;
}

}  // namespace

Planner::Known::Known(SiteKnowledge knowledge) : site(std::move(knowledge)), predictor(site) {}

bool Planner::Members::anything_known() const {
  for (std::size_t place = 0; place < sites.size(); ++place) {
    // The speed of a site that serves alone says nothing of the others.
    if (!sites[place].trains) continue;
    if (predictors[place].is_timed() || total_tflops(sites[place])) return true;
  }
  return false;
}

Planner::Planner(const PlanConfig& config, std::vector<SiteKnowledge> sites, const View& view)
    : config_(config), base_batch_(config.base_batch) {
  for (auto& site : sites) known_.try_emplace(site.site, std::move(site));
  set_view(view);
}

// A new order is not a reason for other work: a plan made anew would lose the one that the sites
// keep as long as no other saves enough.
void Planner::set_view(const View& view) {
  if (is_plan_of(view.members)) return;
  for (const auto& name : view.members) {
    known_.try_emplace(name, SiteKnowledge{}).first->second.site.site = name;
  }
  const auto& members = view.members;
  if (std::ranges::is_permutation(members, plan_.sites, {}, {}, &SitePlan::site)) {
    std::vector<SitePlan> works;
    for (const auto& name : members) works.push_back(work_of(plan_, name));
    plan_.sites = std::move(works);
  } else {
    plan_ = fresh_plan(this->members(members));
  }
}

const RoundPlan& Planner::plan(const View& view) const {
  FARSTEP_CHECK(is_plan_of(view.members), "the plan is for other members than generation {} has",
                view.generation);
  return plan_;
}

std::vector<SiteKnowledge> Planner::sites(const View& view) const {
  return members(view.members).sites;
}

bool Planner::is_plan_of(std::span<const std::string> members) const {
  return std::ranges::equal(members, plan_.sites, {}, {}, &SitePlan::site);
}

Planner::Members Planner::members() const {
  std::vector<std::string> names;
  for (const auto& work : plan_.sites) names.push_back(work.site);
  return members(names);
}

Planner::Members Planner::members(std::span<const std::string> names) const {
  Members members;
  for (const auto& name : names) {
    const auto& [site, predictor] = known_.at(name);
    members.sites.push_back(site);
    members.predictors.push_back(predictor);
  }
  return members;
}

PlanConfig Planner::present_config() const {
  auto config = config_;
  config.base_batch = base_batch_;
  return config;
}

double Planner::learning_rate_factor() const {
  return heterogeneity::learning_rate_factor(config_, base_batch_);
}

RoundPlan Planner::fresh_plan(const Members& members) const {
  auto config = present_config();
  // Equal steps until the sites are measured: a guess at a site's speed would make the others wait.
  const bool learns_first = learns(config.policy) && config.replan && !members.anything_known();
  if (learns_first) config.policy = Policy::kUniform;
  auto plan = make_plan(config, members.sites, members.predictors);
  if (!learns_first) return plan;
  // A shorter round has fewer steps left to balance than it has measured.
  if (config.base_steps >= 2 * kMeasuringSteps) plan.measuring_steps = kMeasuringSteps;
  for (auto& work : plan.sites) {
    if (plan.measuring_steps > 0) work.most_steps = plan.measuring_steps;
    if (!work.trains()) continue;
    if (plan.measuring_steps > 0) {
      work.reason =
          fmt::format("all alike until {} steps of the round have measured them: {} of {}",
                      plan.measuring_steps, work.local_steps, work.batch);
    } else {
      work.reason = fmt::format("all alike until the round has measured them: {} steps of {}",
                                work.local_steps, work.batch);
    }
  }
  return plan;
}

// What the first steps of a run have shown is corrected by their whole round at once: a start makes
// steps longer.
void Planner::Known::learn_steps(const RoundTiming& timing, bool is_whole_round) {
  FARSTEP_CHECK(timing.batch > 0 && timing.micro_batch > 0 && timing.step_seconds > 0 &&
                    timing.overhead_seconds >= 0,
                "timing of {}: steps of {} in {} s, besides {} s", site.site, timing.batch,
                timing.step_seconds, timing.overhead_seconds);
  double seconds = timing.step_seconds;
  std::optional<double> fall;
  const double steps_seconds = static_cast<double>(timing.steps) * timing.step_seconds;
  double overhead =
      std::min(timing.overhead_seconds,
               std::max(kMostNewOverhead * steps_seconds, kMostChange * site.overhead_seconds));
  if (site.seen) {
    const double known = *predictor.seconds(timing.batch, timing.micro_batch);
    if (std::abs(seconds - known) < kNoise * known) {
      seconds = known + kNoiseWeight * (seconds - known);
    } else if (site.seen_in_round && seconds < kMostFall * known && !site.fall) {
      fall = seconds / known;
      seconds = known;
    } else {
      if (site.fall && seconds < known) seconds = std::max(seconds, *site.fall * known);
      seconds = std::clamp(seconds, known / kMostChange, known * kMostChange);
    }
    if (site.overhead_seconds > 0) {  // 0: no complete round has measured it
      overhead = site.overhead_seconds + kOverheadWeight * (overhead - site.overhead_seconds);
    }
  }
  site.seen = SeenStep{timing.batch, timing.micro_batch, seconds};
  site.seen_in_round = is_whole_round;
  site.fall = fall;
  site.overhead_seconds = overhead;
  predictor.see(*site.seen);
}

void Planner::Known::learn_links(const RoundTiming& timing) {
  learn_link(site.seen_links.uplink_bits_per_second, timing.uplink_bits_per_second, 0);
  learn_link(site.seen_links.rtt_seconds, timing.rtt_seconds, kRttNoiseSeconds);
}

void Planner::learn(const View& view, std::span<const RoundTiming> timings, bool is_whole_round) {
  FARSTEP_CHECK(timings.size() == view.size(), "{} timings of {} sites", timings.size(),
                view.size());
  for (std::size_t place = 0; place < view.size(); ++place) {
    const auto& timing = timings[place];
    auto& known = known_.at(view.members[place]);
    // A round without a timed step does not show the site's speed. A round that was cut short
    // hardly does: it may have one step, and an abandoned step counts as overhead.
    const bool is_timed = timing.steps > 0 && timing.step_seconds != 0;
    if (is_timed && !timing.is_leaving) known.learn_steps(timing, is_whole_round);
    known.learn_links(timing);
  }
}

void Planner::plan_rest(const View& view, std::span<const RoundTiming> timings) {
  const auto& measured = this->plan(view);
  const int64_t done = measured.measuring_steps;
  FARSTEP_CHECK(done > 0, "this round is not planned again");
  learn(view, timings, false);
  const auto members = this->members();
  const auto whole_round = present_config();
  auto config = whole_round;
  config.base_steps -= done;
  config.most_steps = most_local_steps(whole_round) - done;
  if (config.round_seconds) {
    double spent_seconds = 0;
    for (std::size_t place = 0; place < view.size(); ++place) {
      const auto& work = measured.sites[place];
      const auto step = members.predictors[place].seconds(work.batch, work.micro_batch);
      spent_seconds = std::max(spent_seconds, static_cast<double>(done) * step.value_or(0));
    }
    *config.round_seconds -= spent_seconds;  // with none left, each site takes one step more
  }
  config.critical_batch.reset();  // batches stay
  // If no site has step times, the rest of the round stays as planned.
  if (!members.anything_known()) config.policy = Policy::kUniform;
  auto plan = make_plan(config, members.sites, members.predictors);
  double measured_seconds = 0;
  for (std::size_t place = 0; place < view.size(); ++place) {
    auto& work = plan.sites[place];
    if (!config.equal_steps) work.micro_batch = measured.sites[place].micro_batch;
    work.local_steps += done;
    work.most_steps += done;
    work.steps_before = done;
    // From the learned step time, since all sites must compute the same length.
    measured_seconds =
        std::max(measured_seconds, static_cast<double>(done) * work.step_seconds.value_or(0));
  }
  const auto rest_seconds = plan.round_seconds;
  // Predicted once more, now for all steps: record and reasons are of the whole round.
  config.most_steps = whole_round.most_steps;
  config.base_steps = whole_round.base_steps;
  config.round_seconds = whole_round.round_seconds;
  plan_ = predicted_anew(config, members.sites, members.predictors, std::move(plan));
  // The sites begin the rest together, when the slowest has done its measuring steps.
  if (rest_seconds) plan_.round_seconds = measured_seconds + *rest_seconds;
}

GradientNoise Planner::noise_with(std::span<const RoundTiming> timings) const {
  return noise_after(noise_, noise_of_round(timings));
}

bool Planner::grow_batch() {
  int64_t batch_of_all = 0;
  for (const auto& work : plan_.sites) batch_of_all += work.batch;
  const auto before = base_batch_;
  base_batch_ = grown_batch(config_, before, batch_of_all, noise_.scale());
  return base_batch_ > before;
}

void Planner::keep_plan() {
  // The next round begins at its start, also after one that was planned twice.
  for (auto& work : plan_.sites) work.steps_before = 0;
}

void Planner::observe(const View& view, std::span<const RoundTiming> timings) {
  noise_ = noise_with(timings);
  const bool grows = grow_batch();
  if (!config_.replan && !grows) return;
  if (config_.replan) learn(view, timings, true);
  keep_plan();
  const auto members = this->members();
  auto fresh = fresh_plan(members);
  // A plan with measuring steps is not of a whole round, so it has no figures to compare.
  const bool is_whole = plan_.measuring_steps == 0;
  if (!grows && learns(config_.policy) && members.anything_known() && is_whole) {
    auto current = predicted_anew(present_config(), members.sites, members.predictors, plan_);
    if (is_as_good(config_, current, fresh)) fresh = std::move(current);
  }
  plan_ = std::move(fresh);
}

Json Planner::state() const {
  PlannerState state;
  for (const auto& work : plan_.sites) {
    state.sites.push_back({learned_state(known_.at(work.site).site), work.local_steps, work.batch,
                           work.micro_batch, work.most_steps, work.steps_before,
                           work.left_out_steps});
  }
  for (const auto& [name, known] : known_) {
    if (std::ranges::find(plan_.sites, name, &SitePlan::site) != plan_.sites.end()) continue;
    state.away.push_back(learned_state(known.site));
  }
  state.noise = noise_;
  if (config_.batch_growth) state.base_batch = base_batch_;
  return to_json(state);
}

void Planner::restore(const Json& json) {
  const auto state = planner_state_from_json(json);
  const auto learn = [&](const LearnedState& saved) {
    auto& known = known_.try_emplace(saved.site, SiteKnowledge{}).first->second;
    known = Known(with_learned(std::move(known.site), saved));
  };
  std::ranges::for_each(state.sites, learn);
  std::ranges::for_each(state.away, learn);
  noise_ = state.noise;
  if (config_.batch_growth && state.base_batch) base_batch_ = *state.base_batch;
  const auto members = this->members();
  const bool same_members = std::ranges::is_permutation(state.sites, plan_.sites, {},
                                                        &MemberState::site, &SitePlan::site);
  plan_ = fresh_plan(members);
  if (!same_members || !learns(config_.policy) || !members.anything_known()) return;
  // A plan depends on those before it (is_as_good), so the knowledge alone does not restore it.
  for (const auto& saved : state.sites) {
    auto& work = work_of(plan_, saved.site);
    if ((work.batch > 0) != (saved.batch > 0)) {
      throw DataError(fmt::format("the plan's state: site {} has batches of {}, but {} here",
                                  saved.site, saved.batch,
                                  work.trains() ? "trains" : "serves alone"));
    }
    work.local_steps = saved.local_steps;
    work.batch = saved.batch;
    work.micro_batch = saved.micro_batch;
    work.most_steps = saved.most_steps;
    work.steps_before = saved.steps_before;
    work.left_out_steps = saved.left_out_steps;
  }
  plan_ = predicted_anew(present_config(), members.sites, members.predictors, std::move(plan_));
}

}  // namespace farstep::heterogeneity
