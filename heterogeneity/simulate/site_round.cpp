#include "heterogeneity/simulate/site_round.h"

#include <numeric>
#include <utility>

namespace farstep::heterogeneity {

TimeUse SiteRound::time() const {
  TimeUse use;
  use.compute_seconds = std::accumulate(step_seconds.begin(), step_seconds.end(), 0.0);
  use.seconds(SpanCause::kEvaluate) = evaluate_seconds;
  use.seconds(SpanCause::kCheckpoint) = checkpoint_seconds;
  use.seconds(SpanCause::kWait) = measuring_wait_seconds;
  for (const auto& sync : syncs) {
    use.seconds(SpanCause::kWait) += sync.exposed.wait;
    use.seconds(SpanCause::kWan) += sync.exposed.wan();
    use.seconds(SpanCause::kOuter) += sync.exposed.outer;
  }
  if (plan.trains()) return use;
  for (const auto cause : {SpanCause::kWait, SpanCause::kWan, SpanCause::kOuter}) {
    use.seconds(SpanCause::kServe) += std::exchange(use.seconds(cause), 0);
  }
  return use;
}

}  // namespace farstep::heterogeneity
