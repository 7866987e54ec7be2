// A planner whose view stays, and what its sites report.
#pragma once

#include <span>
#include <vector>

#include "heterogeneity/plan/planner.h"
#include "tests/heterogeneity/knowledge/known_sites.h"
#include "tests/heterogeneity/policy/known_plans.h"

namespace farstep::heterogeneity {

// The view of these sites at one of them.
inline View view_of_sites(std::span<const SiteKnowledge> sites) {
  View view;
  for (const auto& site : sites) view.members.push_back(site.site);
  return view;
}

// A planner of sites that are the members all the time.
class FixedPlanner {
 public:
  FixedPlanner(const PlanConfig& config, const std::vector<SiteKnowledge>& sites)
      : view_(view_of_sites(sites)), planner_(config, sites, view_) {}

  const RoundPlan& plan() const { return planner_.plan(view_); }
  std::vector<SiteKnowledge> sites() const { return planner_.sites(view_); }
  void observe(std::span<const RoundTiming> timings) { planner_.observe(view_, timings); }
  void plan_rest(std::span<const RoundTiming> timings) { planner_.plan_rest(view_, timings); }
  void keep_plan() { planner_.keep_plan(); }
  const Planner& planner() const { return planner_; }
  Json state() const { return planner_.state(); }
  void restore(const Json& state) { planner_.restore(state); }

 private:
  View view_;
  Planner planner_;
};

// The timings of a round of `plan` whose steps last `seconds`.
inline std::vector<RoundTiming> timings_of(const RoundPlan& plan,
                                           const std::vector<double>& seconds) {
  std::vector<RoundTiming> timings;
  for (std::size_t place = 0; place < plan.sites.size(); ++place) {
    const auto& site = plan.sites[place];
    timings.push_back({site.local_steps, site.batch, site.micro_batch, seconds[place], 0});
  }
  return timings;
}

}  // namespace farstep::heterogeneity
