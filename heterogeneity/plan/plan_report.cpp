// The same plan for people and for programs. Programs get nulls where no step time is known, people
// a dash.
#include "heterogeneity/plan/plan_report.h"

#include <algorithm>

#include "outer_optimizer/schedule/averaging.h"

namespace farstep::heterogeneity {

namespace {

std::vector<double> averaging_weights(outer_optimizer::AveragingRule rule, const RoundPlan& plan) {
  std::vector<outer_optimizer::Work> works;
  for (const auto& site : plan.sites) {
    // A sequence counts as one token: the coefficients depend on ratios only.
    const int64_t steps = site.trains() ? site.local_steps : 0;
    works.push_back({steps, site.batch, steps * site.batch});
  }
  return averaging_coefficients(rule, works);
}

std::string seconds_text(const std::optional<double>& seconds) {
  return seconds ? fmt::format("{:.2f}", *seconds) : "-";
}

}  // namespace

// A figure that cannot be predicted is null, so that every site has the same members.
Json plan_json(Policy policy, outer_optimizer::AveragingRule rule, const RoundPlan& plan) {
  const auto weights = averaging_weights(rule, plan);
  Json sites = Json::array();
  for (std::size_t place = 0; place < plan.sites.size(); ++place) {
    const auto& site = plan.sites[place];
    sites.push_back({{"site", site.site},
                     {"local_steps", site.local_steps},
                     {"micro_batch", site.micro_batch},
                     {"batch", site.batch},
                     {"averaging_weight", weights[place]},
                     {"predicted_compute_seconds", detail::print_value(site.compute_seconds)},
                     {"predicted_idle_seconds", detail::print_value(site.idle_seconds)},
                     {"reason", site.reason}});
  }
  return {{"policy", std::string(name_of(policy))},
          {"sites", std::move(sites)},
          {"predicted_total_idle_seconds", detail::print_value(total_idle_seconds(plan))}};
}

// Reasons come below the table, because their lines are long.
std::string plan_text(Policy policy, outer_optimizer::AveragingRule rule, const RoundPlan& plan) {
  const auto weights = averaging_weights(rule, plan);
  std::size_t width = std::string_view("site").size();
  for (const auto& site : plan.sites) width = std::max(width, site.site.size());

  auto text = fmt::format(
      "Plan of a round by {}\n{:<{}}  {:>7}  {:>6}  {:>11}  {:>6}  {:>9}  {:>8}\n", name_of(policy),
      "site", width, "steps", "batch", "micro-batch", "weight", "compute s", "idle s");
  for (std::size_t place = 0; place < plan.sites.size(); ++place) {
    const auto& site = plan.sites[place];
    text += fmt::format("{:<{}}  {:>7}  {:>6}  {:>11}  {:>6.4f}  {:>9}  {:>8}\n", site.site, width,
                        site.local_steps, site.batch, site.micro_batch, weights[place],
                        seconds_text(site.compute_seconds), seconds_text(site.idle_seconds));
  }
  if (const auto idle = total_idle_seconds(plan)) {
    const double all = *plan.round_seconds * static_cast<double>(num_training(plan));
    text += fmt::format(
        "\nThe round takes {:.2f} s; all sites together idle {:.2f} s, {:.2f} % of "
        "their time.\n\n",
        *plan.round_seconds, *idle, 100 * *idle / all);
  } else {
    text += "\nHow long the round takes is not known: not every site has a step time.\n\n";
  }
  for (const auto& site : plan.sites) {
    text += fmt::format("{:<{}}  {}\n", site.site, width, site.reason);
  }
  return text;
}

// By the names of the run file's `sync`, so that it can be pasted there.
Json sync_json(const SyncPlan& plan) {
  return {{"codec", {{"kind", std::string(name_of(plan.codec))}}},
          {"lanes", plan.lanes},
          {"fragments", plan.fragments},
          {"delay_steps", plan.delay_steps},
          {"sync_seconds", plan.sync_seconds},
          {"exposed_seconds", plan.exposed_seconds},
          {"exposed_share", plan.exposed_share},
          {"reason", plan.reason}};
}

}  // namespace farstep::heterogeneity
