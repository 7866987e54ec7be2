// farstep plan: what each site would do in a round, and why.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "heterogeneity/plan/plan_report.h"
#include "heterogeneity/plan/sync_plan.h"
#include "heterogeneity/policy/policy.h"
#include "heterogeneity/policy/round_bound.h"
#include "outer_optimizer/outer_config.h"
#include "outer_optimizer/strategy_kind.h"
#include "trainer/base/system/printable.h"
#include "trainer/commands/command_line.h"

namespace farstep {

namespace {

struct PlanOptions {
  std::vector<std::string> profiles;
  heterogeneity::Policy policy = heterogeneity::Policy::kHybrid;
  int64_t base_steps = heterogeneity::PlanConfig{}.base_steps;
  int64_t base_batch = heterogeneity::PlanConfig{}.base_batch;
  std::optional<int64_t> micro_batch, critical_batch, most_steps;
  std::optional<double> round_seconds;
  outer_optimizer::AveragingRule averaging = outer_optimizer::OuterConfig{}.averaging;
  outer_optimizer::StrategyKind strategy = outer_optimizer::StrategyConfig{}.kind;
  std::vector<std::string> servers;
  bool scatter = false;
  std::optional<int64_t> example_bytes;
  std::optional<double> wan_target;
  std::optional<int64_t> rounds, tokens;
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
    visit("most_steps", most_steps,
          "most local steps of a site under hybrid; else 1000, or 2.5 times base_steps if more",
          at_least(1));
    visit("round_seconds", round_seconds, "longest round under hybrid, without the exchange",
          above(0));
    visit("averaging", averaging, "rule of the averaging weights");
    visit("strategy", strategy,
          "how the sites' replicas stay together; some need equal numbers of steps");
    visit("servers", servers,
          "names of sites that serve alone and need no profile; with --strategy parameter_server");
    visit("scatter", scatter,
          "say what the master, the first site, sends of batches; with --strategy "
          "data_parallel_master");
    visit("example_bytes", example_bytes,
          "bytes of an example in a batch; else those of the profiles' sequences", at_least(1));
    visit("wan_target", wan_target,
          "also choose how to sync, so that at most this share of a round is exposed WAN time",
          in_range(1e-6, 1));
    visit("rounds", rounds, "say how long so many rounds take; else what a day gives", at_least(1));
    visit("tokens", tokens, "say how long so many tokens take", at_least(1));
    visit("json", json, "print one JSON object instead of a table");
  }
};

// Throws ConfigError if the sites cannot take every step together by these options.
void check_steps_together(const PlanOptions& options) {
  const auto refuse = [&](const std::string& option, const std::string& what) {
    throw ConfigError(fmt::format("{} {}; with --strategy {} all sites take every step together",
                                  option, what, name_of(options.strategy)));
  };
  if (options.policy == heterogeneity::Policy::kStepsByTflops) {
    refuse("--policy steps_by_tflops", "gives the sites different numbers of steps");
  }
  if (options.wan_target) refuse("--wan-target", "chooses how to sync the deltas of rounds");
}

// Returns what is known of the sites. Throws ConfigError.
std::vector<heterogeneity::SiteKnowledge> sites_of(const PlanOptions& options) {
  if (!options.servers.empty() &&
      options.strategy != outer_optimizer::StrategyKind::kParameterServer) {
    throw ConfigError(
        fmt::format("--servers: with --strategy {} no site serves alone; take "
                    "parameter_server, or leave it out",
                    name_of(options.strategy)));
  }
  std::vector<heterogeneity::SiteKnowledge> sites;
  for (auto& profile :
       heterogeneity::read_site_profiles({options.profiles.begin(), options.profiles.end()})) {
    auto& site = sites.emplace_back();
    site.site = profile.site;
    site.profile = std::move(profile);
  }
  for (const auto& server : options.servers) {
    if (std::ranges::count(sites, server, &heterogeneity::SiteKnowledge::site) > 0) {
      throw ConfigError(fmt::format("--servers: {} stands twice, or has a profile", server));
    }
    auto& site = sites.emplace_back();
    site.site = server;
    site.trains = false;
  }
  return sites;
}

// Returns the model of the profiles; nullopt if none has one.
std::optional<heterogeneity::ProfiledModel> model_of(
    std::span<const heterogeneity::SiteKnowledge> sites) {
  for (const auto& site : sites) {
    if (site.profile && site.profile->model) return site.profile->model;
  }
  return std::nullopt;
}

// The bytes of batches that the master, the first site, sends for each step.
struct ScatteredBytes {
  std::string master;
  int64_t bytes = 0;
};

// Throws ConfigError if nobody knows the size of an example.
ScatteredBytes scattered_bytes(const PlanOptions& options,
                               std::span<const heterogeneity::SiteKnowledge> sites,
                               const heterogeneity::RoundPlan& plan) {
  const auto model = model_of(sites);
  auto example_bytes = options.example_bytes;
  if (!example_bytes && model) {
    example_bytes = static_cast<int64_t>(sizeof(int64_t)) * (model->sequence_length + 1);
  }
  if (!example_bytes) {
    throw ConfigError("--scatter needs --example-bytes, or profiles with a model");
  }
  ScatteredBytes scattered{.master = plan.sites.front().site};
  for (const auto& site : plan.sites) {
    if (site.site != scattered.master) scattered.bytes += site.batch * *example_bytes;
  }
  return scattered;
}

// Plans the sync from the profiles' links. Throws ConfigError if the profiles lack figures.
heterogeneity::SyncPlan choose_sync(std::span<const heterogeneity::SiteKnowledge> sites,
                                    const heterogeneity::PlanConfig& config, double target) {
  const auto model = model_of(sites);
  const auto facts = model ? sync_facts(sites, config, model->parameters) : std::nullopt;
  if (!facts) {
    throw ConfigError(
        "--wan-target needs profiles with a model, step times and links: measure "
        "with `farstep profile --links` at all sites at once");
  }
  return heterogeneity::plan_sync(*facts, target);
}

}  // namespace

int plan_command(const Arguments& arguments) {
  const auto options = parse_command_line<PlanOptions>("plan", arguments);
  if (!options) return 0;
  const auto sites = sites_of(*options);
  heterogeneity::PlanConfig config;
  config.policy = options->policy;
  config.base_steps = options->base_steps;
  config.base_batch = options->base_batch;
  config.micro_batch = options->micro_batch;
  config.critical_batch = options->critical_batch;
  config.equal_steps = traits_of(options->strategy).steps_together;
  if (config.equal_steps) check_steps_together(*options);
  config.most_steps = options->most_steps;
  config.round_seconds = options->round_seconds;
  check_round_bound(config, "farstep plan");
  if (options->rounds && options->tokens) throw ConfigError("give either --rounds or --tokens");
  if (options->scatter && !traits_of(options->strategy).has_master) {
    throw ConfigError(fmt::format(
        "--scatter: with --strategy {} no master sends batches; take data_parallel_master, or "
        "leave it out",
        name_of(options->strategy)));
  }
  // The policies name JSON paths, as in a run file; here the command stands for the file.
  const auto plan = in_options_of<PlanOptions>("plan", "plan.", [&] {
    return in_file("farstep plan", [&] { return make_plan(config, sites); });
  });
  std::optional<ScatteredBytes> scattered;
  if (options->scatter) scattered = scattered_bytes(*options, sites, plan);
  std::optional<heterogeneity::SyncPlan> sync;
  if (options->wan_target) sync = choose_sync(sites, config, *options->wan_target);
  heterogeneity::ForecastSettings settings{.plan = config,
                                           .averaging = options->averaging,
                                           .sync = {},
                                           .parameters = {},
                                           .sequence_length = {}};
  if (sync) settings.sync = changed_to(settings.sync, *sync);
  if (const auto model = model_of(sites)) {
    settings.parameters = model->parameters;
    settings.sequence_length = model->sequence_length;
  }
  const auto forecast = forecast_of(settings, sites, plan);
  const heterogeneity::RunLength length{options->rounds, options->tokens};
  if (options->json) {
    auto json = plan_json(forecast, length);
    if (sync) json["sync"] = sync_json(*sync);
    if (scattered) {
      json["scatter"] = {{"master", scattered->master}, {"bytes_a_step", scattered->bytes}};
    }
    fmt::print("{}\n", json.dump());
    return 0;
  }
  // The names in a profile are another site's.
  fmt::print("{}", safe_lines(plan_text(forecast, length)));
  if (sync) fmt::print("\nsync  {}\n", sync->reason);
  if (scattered) {
    fmt::print("\nscatter  {} sends the others {} bytes of batches for each step\n",
               scattered->master, scattered->bytes);
  }
  return 0;
}

}  // namespace farstep
