#include "trainer/strategy/planned_work.h"

#include <algorithm>

#include "trainer/base/error.h"

namespace farstep {

// Each site plans for itself, so a disagreement would show in nothing but wrong averaging weights
// and overlapping data.
void check_planned(const wan::Go& go, std::span<const PlannedWork> planned,
                   const std::function<int64_t(const PlannedWork&)>& least_steps) {
  FARSTEP_CHECK(go.sites.size() == go.contributions.size(), "{} sites sent {} contributions",
                go.sites.size(), go.contributions.size());
  for (std::size_t place = 0; place < go.sites.size(); ++place) {
    const auto& contribution = go.contributions[place];
    // A newcomer takes the mean and brings nothing. The plan may be older than its absence.
    if (contribution.work == outer_optimizer::Work{} && contribution.timing.steps == 0) continue;
    const auto found = std::ranges::find(planned, go.sites[place], &PlannedWork::site);
    FARSTEP_CHECK(found != planned.end(), "site {} took part in round {}, which was not planned",
                  go.sites[place], go.round);
    const auto& plan = *found;
    const auto& done = contribution.timing;
    // By a deadline a site ends when its time is up, and when it is asked to stop. One step is
    // enough then.
    const int64_t least = plan.ends_by_steps && !done.is_leaving ? least_steps(plan) : 1;
    FARSTEP_CHECK(done.batch == plan.batch && done.steps >= least && done.steps <= plan.most_steps,
                  "site {} did {} steps of {} in round {}, but by this site's plan {} of {}: the "
                  "sites do not hold the same plan",
                  plan.site, done.steps, done.batch, go.round, least, plan.batch);
  }
}

}  // namespace farstep
