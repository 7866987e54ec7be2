#include "heterogeneity/policy/batch_growth.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trainer/config/json_fields.h"

namespace farstep::heterogeneity {

int64_t grown_batch(const PlanConfig& config, int64_t base_batch, int64_t batch_of_all,
                    std::optional<double> noise_scale) {
  if (!config.batch_growth || !noise_scale || !std::isfinite(*noise_scale) || batch_of_all < 1) {
    return base_batch;
  }
  const auto& growth = *config.batch_growth;
  // One wrong estimate must not make a batch that the run keeps to its end.
  const double factor =
      std::clamp(*noise_scale / static_cast<double>(batch_of_all), 1.0, growth.most_factor);
  const double most =
      std::min(static_cast<double>(base_batch) * factor, static_cast<double>(growth.most_batch));
  // Whole micro-batches: a last one that is smaller would take as long on a GPU.
  const int64_t unit = config.micro_batch.value_or(1);
  return std::max(base_batch, static_cast<int64_t>(most) / unit * unit);
}

double learning_rate_factor(const PlanConfig& config, int64_t base_batch) {
  if (!config.batch_growth || config.batch_growth->learning_rate == LearningRateRule::kNone) {
    return 1;
  }
  return std::sqrt(static_cast<double>(base_batch) / static_cast<double>(config.base_batch));
}

void check_batch_growth(const PlanConfig& config, std::span<const RunSite> sites,
                        const std::string& file) {
  if (!config.batch_growth) return;
  const JsonPath plan{file, "plan"};
  if (config.batch_growth->most_batch < config.base_batch) {
    plan.member("batch_growth")
        .member("most_batch")
        .fail(fmt::format("is {}; must be at least plan.base_batch, {}",
                          config.batch_growth->most_batch, config.base_batch));
  }
  if (config.critical_batch) {
    plan.member("critical_batch")
        .fail("is given, and plan.batch_growth measures it: set one of both to null");
  }
  for (std::size_t place = 0; place < sites.size(); ++place) {
    if (!sites[place].batch) continue;
    JsonPath{file, "sites"}.element(place).member("batch").fail(
        "is given, but plan.batch_growth decides it: leave it out");
  }
  // Sites that sum their gradients in every step measure against the sum.
  if (config.equal_steps && std::ranges::count_if(sites, &RunSite::trains) > 1) return;
  if (!config.micro_batch || 2 * *config.micro_batch > config.base_batch) {
    plan.member("micro_batch")
        .fail(fmt::format(
            "is {}; plan.batch_growth compares a micro-batch with the whole batch of a site: set "
            "it to half of plan.base_batch, {}, or less",
            config.micro_batch ? fmt::to_string(*config.micro_batch) : "null", config.base_batch));
  }
}

}  // namespace farstep::heterogeneity
