// farstep plan: what each site would do in a round, and why.
#include <fmt/format.h>

#include <filesystem>

#include "heterogeneity/plan/plan_report.h"
#include "heterogeneity/plan/policy.h"
#include "trainer/commands/command_line.h"

namespace farstep {

namespace {

struct PlanOptions {
  std::vector<std::string> profiles;
  Policy policy = Policy::kHybrid;
  int64_t base_steps = PlanConfig{}.base_steps;
  int64_t base_batch = PlanConfig{}.base_batch;
  std::optional<int64_t> micro_batch, critical_batch;
  AveragingRule averaging = OuterConfig{}.averaging;
  bool json = false;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("profiles", profiles, "the sites' profiles, as `farstep profile` writes them",
          required(at_least(1)));
    visit("policy", policy, "how the sites share the work");
    visit("base_steps", base_steps, "local steps of the slowest site", at_least(1));
    visit("base_batch", base_batch, "sequences of one inner step of a site", at_least(1));
    visit("micro_batch", micro_batch,
          "sequences of one forward and backward on a device; else the policy decides",
          at_least(1));
    visit("critical_batch", critical_batch,
          "most sequences of all sites' inner steps together, up to which hybrid raises batches",
          at_least(1));
    visit("averaging", averaging, "rule of the averaging weights");
    visit("json", json, "print one JSON object instead of a table");
  }
};

}  // namespace

int plan_command(const Arguments& arguments) {
  const auto options = parse_command_line<PlanOptions>("plan", arguments);
  if (!options) return 0;
  std::vector<SiteKnowledge> sites;
  for (auto& profile : read_site_profiles({options->profiles.begin(), options->profiles.end()})) {
    auto& site = sites.emplace_back();
    site.site = profile.site;
    site.profile = std::move(profile);
  }
  PlanConfig config;
  config.policy = options->policy;
  config.base_steps = options->base_steps;
  config.base_batch = options->base_batch;
  config.micro_batch = options->micro_batch;
  config.critical_batch = options->critical_batch;
  const auto plan = make_plan(config, sites, "farstep plan");
  fmt::print("{}", options->json ? plan_json(config.policy, options->averaging, plan).dump() + "\n"
                                 : plan_text(config.policy, options->averaging, plan));
  return 0;
}

}  // namespace farstep
