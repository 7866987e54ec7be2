#include "heterogeneity/policy/plan.h"

#include <algorithm>

#include "trainer/base/error.h"

namespace farstep::heterogeneity {

// The round ends for all with the slowest site. One unknown site makes the round's end unknown.
void predict_round(RoundPlan& plan, std::span<const double> overhead_seconds) {
  FARSTEP_CHECK(overhead_seconds.size() == plan.sites.size(), "{} sites, {} overheads",
                plan.sites.size(), overhead_seconds.size());
  plan.round_seconds = 0;
  for (std::size_t place = 0; place < plan.sites.size(); ++place) {
    auto& site = plan.sites[place];
    site.compute_seconds.reset();
    site.idle_seconds.reset();
    if (site.step_seconds) {
      site.compute_seconds = static_cast<double>(site.local_steps) * *site.step_seconds;
    }
    if (!site.compute_seconds) {
      plan.round_seconds.reset();
    } else if (plan.round_seconds) {
      plan.round_seconds =
          std::max(*plan.round_seconds, overhead_seconds[place] + *site.compute_seconds);
    }
  }
  if (!plan.round_seconds) return;
  for (std::size_t place = 0; place < plan.sites.size(); ++place) {
    auto& site = plan.sites[place];
    site.idle_seconds = *plan.round_seconds - (overhead_seconds[place] + *site.compute_seconds);
  }
}

int64_t num_training(const RoundPlan& plan) {
  return std::ranges::count_if(plan.sites, &SitePlan::trains);
}

std::optional<double> total_idle_seconds(const RoundPlan& plan) {
  double sum = 0;
  for (const auto& site : plan.sites) {
    if (!site.trains()) continue;
    if (!site.idle_seconds) return std::nullopt;
    sum += *site.idle_seconds;
  }
  return sum;
}

int64_t range_begin(const RoundPlan& plan, std::size_t place) {
  int64_t begin = 0;
  for (std::size_t before = 0; before < place; ++before) begin += plan.sites[before].sequences();
  return begin;
}

int64_t total_sequences(const RoundPlan& plan) {
  return range_begin(plan, plan.sites.size());
}

}  // namespace farstep::heterogeneity
