#include "heterogeneity/plan/planner.h"

#include <algorithm>
#include <cmath>

namespace farstep {

namespace {

// A step time that differs by less is noise and counts by half. That reduces the variance of
// independent noise to a third. A larger difference counts in full, so a site that slows down is
// balanced one round later. After a drop to half 0.38 % was waiting (docs/results.md, The planner).
// With a larger kNoise a small change of speed takes several rounds to be believed. With a smaller
// one the plan follows noise.
constexpr double kNoise = 0.05;
constexpr double kNoiseWeight = 0.5;
// Bounds the damage of one wrong figure, such as that of a process that was paused. A site that is
// really 16 times slower is known after two rounds.
constexpr double kMostChange = 4;  // of a step time in one round
// Evaluation and checkpoints come in some rounds only. The average plans for their mean over the
// last rounds. No measurement chose this weight; a smaller one takes more rounds to follow a
// change.
constexpr double kOverheadWeight = 0.5;
// Link figures that differ by less count as equal. A sync is planned for a line that is slower by
// as much (kCarefulSpeed in sync_plan.cpp), so it stays right meanwhile.
constexpr double kLinkNoise = 0.2;
// On a local network a fifth of a round trip is less than the delay of a thread that wakes up.
constexpr double kRttNoiseSeconds = 0.002;
// Steps that measure unknown sites. The first is left out, since a device makes its allocations in
// it. One of the others may be a hiccup. Fast sites wait for as many steps of the slowest, once in
// a run: 3.3 % of the first round of the quickstart (docs/results.md, Quickstart).
constexpr int64_t kMeasuringSteps = 4;
// Share of the sites' time that a change of the work must save. Noise of the step times moves the
// best plan by a step here and there. With 0 it would change in every round; a larger value keeps
// plans that waste more.
constexpr double kWorthwhileSaving = 0.003;

struct SeenState {
  int64_t batch = 0, micro_batch = 0;
  double seconds = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("batch", batch, "sequences of the step", required(at_least(1)));
    visit("micro_batch", micro_batch, "of its micro-batches", required(at_least(1)));
    visit("seconds", seconds, "how long the step takes", required(above(0)));
  }
};

struct SiteState {
  std::string site;
  std::optional<SeenState> seen;
  double overhead_seconds = 0;
  std::optional<double> uplink_bits_per_second, rtt_seconds;
  int64_t local_steps = 0, batch = 0, micro_batch = 0, most_steps = 0, steps_before = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("site", site, "name of the site", kRequired);
    visit("seen", seen, "the step time that the run has shown");
    visit("overhead_seconds", overhead_seconds, "its time besides the steps", kRequired);
    visit("uplink_bits_per_second", uplink_bits_per_second, "that the run has shown", above(0));
    visit("rtt_seconds", rtt_seconds, "to the farthest peer, that the run has shown", at_least(0));
    visit("local_steps", local_steps, "of the next round", required(at_least(1)));
    visit("batch", batch, "of the next round", required(at_least(1)));
    visit("micro_batch", micro_batch, "of the next round", required(at_least(1)));
    visit("most_steps", most_steps, "of the next round", required(at_least(1)));
    visit("steps_before", steps_before, "done when the round was planned again", at_least(0));
  }
};

struct PlannerState {
  std::vector<SiteState> sites;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("sites", sites, "in order of site ids", kRequired);
  }
};

// Sets `known` to a measured figure (0: none), if that is the first or differs by more than `noise`
// and more than kLinkNoise. The known value stays as it was instead of moving a little. Every sync
// is chosen from it, and a value that creeps would change the choice.
void settle(std::optional<double>& known, double measured, double noise) {
  if (measured == 0) return;
  if (!known || std::abs(measured - *known) > std::max(noise, kLinkNoise * *known)) {
    known = measured;
  }
}

bool same_loads(const RoundPlan& a, const RoundPlan& b) {
  return std::equal(a.sites.begin(), a.sites.end(), b.sites.begin(), b.sites.end(),
                    [](const SitePlan& one, const SitePlan& other) {
                      return one.batch == other.batch && one.micro_batch == other.micro_batch;
                    });
}

// Returns the predicted idle time as a share of all sites' time.
double idle_share(const RoundPlan& plan) {
  return *total_idle_seconds(plan) / (*plan.round_seconds * static_cast<double>(plan.sites.size()));
}

// Batches must be equal: a larger batch is chosen for its tokens a second, which idle time does not
// show.
bool is_as_good(const RoundPlan& current, const RoundPlan& fresh) {
  return current.round_seconds && fresh.round_seconds && same_loads(current, fresh) &&
         idle_share(current) <= idle_share(fresh) + kWorthwhileSaving;
}

}  // namespace

Planner::Planner(const PlanConfig& config, std::vector<SiteKnowledge> sites)
    : config_(config),
      sites_(std::move(sites)),
      predictors_(predictors_of(sites_)),
      plan_(fresh_plan()) {}

bool Planner::anything_known() const {
  for (std::size_t id = 0; id < sites_.size(); ++id) {
    if (predictors_[id].is_timed() || total_tflops(sites_[id])) return true;
  }
  return false;
}

RoundPlan Planner::fresh_plan() const {
  auto config = config_;
  // Equal steps until the sites are measured: a guess at a site's speed would make the others wait.
  const bool learns_first = learns(config.policy) && config.replan && !anything_known();
  if (learns_first) config.policy = Policy::kUniform;
  auto plan = make_plan(config, sites_, predictors_);
  if (!learns_first) return plan;
  // A shorter round has fewer steps left to balance than it has measured.
  if (config.base_steps >= 2 * kMeasuringSteps) plan.measuring_steps = kMeasuringSteps;
  for (auto& work : plan.sites) {
    if (plan.measuring_steps > 0) {
      work.most_steps = plan.measuring_steps;
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

void Planner::learn_steps(std::size_t site_id, const RoundTiming& timing) {
  auto& site = sites_[site_id];
  FARSTEP_CHECK(timing.batch > 0 && timing.micro_batch > 0 && timing.step_seconds > 0 &&
                    timing.overhead_seconds >= 0,
                "timing of {}: steps of {} in {} s, besides {} s", site.site, timing.batch,
                timing.step_seconds, timing.overhead_seconds);
  double seconds = timing.step_seconds;
  double overhead = timing.overhead_seconds;
  if (site.seen) {
    const double known = *predictors_[site_id].seconds(timing.batch, timing.micro_batch);
    if (std::abs(seconds - known) < kNoise * known) {
      seconds = known + kNoiseWeight * (seconds - known);
    } else {
      seconds = std::clamp(seconds, known / kMostChange, known * kMostChange);
    }
    if (site.overhead_seconds > 0) {  // 0: no complete round has measured it
      overhead = site.overhead_seconds + kOverheadWeight * (overhead - site.overhead_seconds);
    }
  }
  site.seen = SeenStep{timing.batch, timing.micro_batch, seconds};
  site.overhead_seconds = overhead;
  predictors_[site_id].see(*site.seen);
}

void Planner::learn_links(std::size_t site_id, const RoundTiming& timing) {
  auto& links = sites_[site_id].seen_links;
  settle(links.uplink_bits_per_second, timing.uplink_bits_per_second, 0);
  settle(links.rtt_seconds, timing.rtt_seconds, kRttNoiseSeconds);
}

void Planner::learn(std::span<const RoundTiming> timings) {
  FARSTEP_CHECK(timings.size() == sites_.size(), "{} timings of {} sites", timings.size(),
                sites_.size());
  for (std::size_t id = 0; id < sites_.size(); ++id) {
    // A round without a timed step tells nothing of the site's speed.
    if (timings[id].steps > 0 && timings[id].step_seconds != 0) learn_steps(id, timings[id]);
    learn_links(id, timings[id]);
  }
}

void Planner::plan_rest(std::span<const RoundTiming> timings) {
  const int64_t done = plan_.measuring_steps;
  FARSTEP_CHECK(done > 0, "this round is not planned again");
  learn(timings);
  auto config = config_;
  config.base_steps -= done;
  config.critical_batch.reset();  // batches stay
  // If no site has step times, the rest of the round stays as planned.
  if (!anything_known()) config.policy = Policy::kUniform;
  auto plan = make_plan(config, sites_, predictors_);
  double measured_seconds = 0;
  for (std::size_t id = 0; id < sites_.size(); ++id) {
    auto& work = plan.sites[id];
    work.micro_batch = plan_.sites[id].micro_batch;
    work.local_steps += done;
    work.most_steps += done;
    work.steps_before = done;
    // From the learned step time, since all sites must compute the same length.
    measured_seconds =
        std::max(measured_seconds, static_cast<double>(done) * work.step_seconds.value_or(0));
  }
  const auto rest_seconds = plan.round_seconds;
  // Predicted once more, now for all steps: record and reasons are of the whole round.
  plan_ = predicted_anew(config, sites_, predictors_, std::move(plan));
  // The sites begin the rest together, when the slowest has done its measuring steps.
  if (rest_seconds) plan_.round_seconds = measured_seconds + *rest_seconds;
}

void Planner::keep_plan() {
  for (auto& work : plan_.sites) work.steps_before = 0;
}

void Planner::observe(std::span<const RoundTiming> timings) {
  if (!config_.replan) return;
  learn(timings);
  keep_plan();
  auto fresh = fresh_plan();
  // A plan with measuring steps is not of a whole round, so it has no figures to compare.
  const bool is_whole = plan_.measuring_steps == 0;
  if (learns(config_.policy) && anything_known() && is_whole) {
    auto current = predicted_anew(config_, sites_, predictors_, plan_);
    if (is_as_good(current, fresh)) fresh = std::move(current);
  }
  plan_ = std::move(fresh);
}

Json Planner::state() const {
  PlannerState state;
  for (std::size_t id = 0; id < sites_.size(); ++id) {
    const auto& known = sites_[id];
    const auto& work = plan_.sites[id];
    auto& site = state.sites.emplace_back();
    site.site = known.site;
    site.overhead_seconds = known.overhead_seconds;
    site.uplink_bits_per_second = known.seen_links.uplink_bits_per_second;
    site.rtt_seconds = known.seen_links.rtt_seconds;
    site.local_steps = work.local_steps;
    site.batch = work.batch;
    site.micro_batch = work.micro_batch;
    site.most_steps = work.most_steps;
    site.steps_before = work.steps_before;
    if (known.seen) {
      site.seen = SeenState{known.seen->batch, known.seen->micro_batch, known.seen->seconds};
    }
  }
  return to_json(state);
}

void Planner::restore(const Json& json) {
  PlannerState state;
  try {
    state = read_json<PlannerState>(json, "the plan's state");
  } catch (const ConfigError& error) {
    throw DataError(error.what());
  }
  const bool same_sites = std::equal(
      state.sites.begin(), state.sites.end(), sites_.begin(), sites_.end(),
      [](const SiteState& saved, const SiteKnowledge& known) { return saved.site == known.site; });
  if (!same_sites) throw DataError("the plan's state is of other sites than the run has");
  for (std::size_t id = 0; id < sites_.size(); ++id) {
    const auto& saved = state.sites[id];
    sites_[id].overhead_seconds = saved.overhead_seconds;
    sites_[id].seen_links = {saved.uplink_bits_per_second, saved.rtt_seconds};
    sites_[id].seen.reset();
    if (saved.seen) {
      sites_[id].seen = SeenStep{saved.seen->batch, saved.seen->micro_batch, saved.seen->seconds};
    }
  }
  // Predictors follow from the knowledge, so checkpoints do not contain them.
  predictors_ = predictors_of(sites_);
  plan_ = fresh_plan();
  // A plan depends on those before it (is_as_good), so the knowledge alone does not restore it.
  if (learns(config_.policy) && anything_known()) {
    for (std::size_t id = 0; id < sites_.size(); ++id) {
      const auto& saved = state.sites[id];
      auto& work = plan_.sites[id];
      work.local_steps = saved.local_steps;
      work.batch = saved.batch;
      work.micro_batch = saved.micro_batch;
      work.most_steps = saved.most_steps;
      work.steps_before = saved.steps_before;
    }
    plan_ = predicted_anew(config_, sites_, predictors_, std::move(plan_));
  }
}

}  // namespace farstep
