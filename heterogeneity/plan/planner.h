// The closed loop: plans a round, learns from it how long steps really take and how fast links are,
// plans the next.
//
// All sites run the same planner on the same timings and so hold the same plan in the same round.
// Not thread-safe: one owner.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heterogeneity/plan/policy.h"
#include "heterogeneity/plan/round_timing.h"
#include "trainer/config/json_fields.h"

namespace farstep {

class Planner {
 public:
  // Plans the first round from `sites`, in order of site ids. A policy that lacks the profiles for
  // it throws as make_plan() does, but for hybrid with re-planning on, which begins as uniform and
  // learns. `source` names where `config` comes from.
  Planner(const PlanConfig& config, std::vector<SiteKnowledge> sites, std::string source);

  // The round to come.
  const RoundPlan& plan() const { return plan_; }
  // What is known of the sites by now, in order of site ids.
  std::span<const SiteKnowledge> sites() const { return sites_; }

  // Learns from a committed round (one timing a site, in order of site ids; no steps or no step
  // time: nothing is known of it) and plans the next. A site's first step time counts in full. A
  // later one that differs from what is known by less than a few percent counts by half, as noise
  // does; more is a change of the site and counts in full, but by at most a factor of four a round.
  // The sites keep their work unless other work saves idle time worth mentioning. A figure of a
  // link replaces what is known if it differs by more than a fifth: less is noise, and changes
  // nothing that follows from it. Without re-planning nothing is learned and the plan stays.
  void observe(std::span<const RoundTiming> timings);

  // What was learned and planned, and back: a resumed run goes on with the plan it had. Throws
  // DataError if `state` is not of these sites.
  Json state() const;
  void restore(const Json& state);

 private:
  bool anything_known() const;
  // The plan that follows from what is known, whatever was planned before.
  RoundPlan fresh_plan() const;
  void learn_steps(std::size_t site_id, const RoundTiming& timing);
  void learn_links(std::size_t site_id, const RoundTiming& timing);

  const PlanConfig config_;
  const std::string source_;
  std::vector<SiteKnowledge> sites_;
  std::vector<StepPredictor> predictors_;
  RoundPlan plan_;
};

}  // namespace farstep
