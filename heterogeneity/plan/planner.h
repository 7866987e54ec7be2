// The control loop: plans a round, learns the real step times and link speeds from it, and plans
// the next.
//
// Its knowledge of a site goes by the site's name and outlives the site's membership. A plan is for
// the members of one view, in the order of the view. All sites run the same planner on the same
// views and timings. So they have the same plan in the same round. Not thread-safe: one owner.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "heterogeneity/knowledge/gradient_noise.h"
#include "heterogeneity/knowledge/round_timing.h"
#include "heterogeneity/policy/policy.h"
#include "trainer/base/view.h"
#include "trainer/config/json_fields.h"

namespace farstep::heterogeneity {

class Planner {
 public:
  // Plans the first round for the members of `view`. `sites` is what is known of sites, members or
  // not, in any order. If a policy lacks profiles, it throws as make_plan() does. The exception is
  // hybrid with re-planning: it begins as uniform and learns in the first round after
  // measuring_steps, if the round has at least twice as many steps.
  Planner(const PlanConfig& config, std::vector<SiteKnowledge> sites, const View& view);

  // Plans the next round for the members of `view`. Called between two rounds. In another order the
  // same members keep their work. A site that is no member gets no work, and what is known of it is
  // kept. A member of which nothing is known is planned for as the policy plans for such a site.
  // Throws as make_plan() does; the plan is then the one before.
  void set_view(const View& view);

  // The plan of the round that is under way or next, in the order of the view. Throws InternalError
  // if the plan is for other members, or for another order of them.
  const RoundPlan& plan(const View& view) const;
  // Returns the present knowledge of the view's members, in its order.
  std::vector<SiteKnowledge> sites(const View& view) const;

  // Learns from a committed round of `view` and plans the next for the present members. `timings`
  // has one element for each member of `view`, in its order. A timing without steps or step time
  // means that the round has no figures of the site. Of a site that is leaving only the link
  // figures count, as its round was cut short.
  //
  // A site's first step time replaces the estimate. A later one that differs by less than a few
  // percent counts by half, since the difference is noise. A larger difference is a change of the
  // site and counts in full, by at most a factor of four per round. But if it falls by more than a
  // third, it counts when a second round shows it too. The sites keep their work
  // unless other work saves enough idle time. A link figure replaces the old one only if it differs
  // by more than a fifth; less is noise. Without re-planning only the gradient's noise is learned,
  // and the plan stays. With plan.batch_growth the base batch may grow then (grown_batch), and a
  // plan of another base batch replaces the one before.
  void observe(const View& view, std::span<const RoundTiming> timings);

  // Learns from the round's measuring_steps, as observe() does, and plans the rest of the round.
  // The sites start the rest together, so that they end it together. Batches stay. `view` must be
  // the plan's.
  void plan_rest(const View& view, std::span<const RoundTiming> timings);

  // Returns what the rounds so far have shown of the gradient's noise, once `timings` are observed.
  GradientNoise noise_with(std::span<const RoundTiming> timings) const;

  // The base batch of the present plan, and by what the inner learning rates are multiplied with
  // it.
  int64_t base_batch() const { return base_batch_; }
  double learning_rate_factor() const;

  // Uses the plan again for the next round. Called when the finished round has no figures yet.
  void keep_plan();

  // The learned figures of all sites, the base batch and the plan, by name, saved and restored: a
  // resumed run continues with its plan. If the saved plan is for other members than the present
  // ones, these get a plan of their own. restore() throws DataError if `state` is malformed.
  Json state() const;
  void restore(const Json& state);

 private:
  struct Known {
    explicit Known(SiteKnowledge knowledge);
    void learn_steps(const RoundTiming& timing, bool is_whole_round);
    void learn_links(const RoundTiming& timing);

    SiteKnowledge site;
    StepPredictor predictor;
  };
  // What is known of the members of a view, in its order.
  struct Members {
    std::vector<SiteKnowledge> sites;
    std::vector<StepPredictor> predictors;

    bool anything_known() const;
  };

  bool is_plan_of(std::span<const std::string> members) const;
  // Returns what is known of the plan's members.
  Members members() const;
  Members members(std::span<const std::string> names) const;
  void learn(const View& view, std::span<const RoundTiming> timings, bool is_whole_round);
  // Returns the plan of the present knowledge, independent of the plan before.
  RoundPlan fresh_plan(const Members& members) const;
  // Returns the settings of the present plan: the run's, with the base batch as it has grown.
  PlanConfig present_config() const;
  // Lets the base batch grow by the noise of the rounds so far. Returns false if it stays.
  bool grow_batch();

  const PlanConfig config_;
  std::map<std::string, Known> known_;  // by name; has all members
  GradientNoise noise_;                 // of all sites, over the rounds so far
  int64_t base_batch_;
  RoundPlan plan_;
};

}  // namespace farstep::heterogeneity
