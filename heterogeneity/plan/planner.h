// The control loop: plans a round, learns the real step times and link speeds from it, and plans
// the next.
//
// All sites run the same planner on the same timings. So they have the same plan in the same round.
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
  // Plans the first round from `sites`, in order of site ids. If a policy lacks profiles, it throws
  // as make_plan() does. The exception is hybrid with re-planning: it begins as uniform and learns
  // in the first round after measuring_steps, if the round has at least twice as many steps.
  Planner(const PlanConfig& config, std::vector<SiteKnowledge> sites);

  // The plan of the round that is under way or next.
  const RoundPlan& plan() const { return plan_; }
  // The present knowledge of the sites, in order of site ids.
  std::span<const SiteKnowledge> sites() const { return sites_; }

  // Learns from a committed round and plans the next. `timings` has one element per site, in order
  // of site ids. A timing without steps or step time means that the round has no figures of the
  // site.
  //
  // A site's first step time replaces the estimate. A later one that differs by less than a few
  // percent counts by half, since the difference is noise. A larger difference is a change of the
  // site and counts in full, by at most a factor of four per round. The sites keep their work
  // unless other work saves enough idle time. A link figure replaces the old one only if it differs
  // by more than a fifth; less is noise. Without re-planning nothing is learned and the plan stays.
  void observe(std::span<const RoundTiming> timings);

  // Learns from the round's measuring_steps, as observe() does, and plans the rest of the round.
  // The sites start the rest together, so that they end it together. Batches stay.
  void plan_rest(std::span<const RoundTiming> timings);

  // Uses the plan again for the next round. Called when the finished round has no figures yet.
  void keep_plan();

  // The learned figures and the plan, saved and restored: a resumed run continues with its plan.
  // restore() throws DataError if `state` is of other sites.
  Json state() const;
  void restore(const Json& state);

 private:
  bool anything_known() const;
  void learn(std::span<const RoundTiming> timings);
  // Returns the plan of the present knowledge, independent of the plan before.
  RoundPlan fresh_plan() const;
  void learn_steps(std::size_t site_id, const RoundTiming& timing);
  void learn_links(std::size_t site_id, const RoundTiming& timing);

  const PlanConfig config_;
  std::vector<SiteKnowledge> sites_;
  std::vector<StepPredictor> predictors_;
  RoundPlan plan_;
};

}  // namespace farstep
