#include "heterogeneity/plan/plan.h"

namespace farstep {

RoundPlan uniform_plan(const RunConfig& run, const std::string& file) {
  RoundPlan plan;
  for (const auto& site : run.sites) {
    const int64_t batch = site.batch.value_or(run.plan.base_batch);
    const auto micro_batch = site.micro_batch ? site.micro_batch : run.plan.micro_batch;
    if (micro_batch.value_or(batch) > batch) {
      const JsonPlace place{file, site.micro_batch ? "sites" : "plan"};
      (site.micro_batch ? place.element(plan.size()) : place)
          .member("micro_batch")
          .fail(fmt::format("is {}; must be at most the batch of {}, {}", *micro_batch, site.name,
                            batch));
    }
    plan.push_back({.site = site.name,
                    .local_steps = site.local_steps.value_or(run.plan.base_steps),
                    .batch = batch,
                    .micro_batch = micro_batch.value_or(batch)});
  }
  return plan;
}

int64_t range_begin(const RoundPlan& plan, std::size_t site_id) {
  int64_t begin = 0;
  for (std::size_t site = 0; site < site_id; ++site) begin += plan[site].sequences();
  return begin;
}

int64_t total_sequences(const RoundPlan& plan) {
  return range_begin(plan, plan.size());
}

}  // namespace farstep
