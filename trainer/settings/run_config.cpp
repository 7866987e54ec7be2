#include "trainer/settings/run_config.h"

#include <algorithm>
#include <set>

#include "heterogeneity/policy/batch_growth.h"
#include "heterogeneity/policy/policy.h"
#include "heterogeneity/policy/round_bound.h"
#include "trainer/settings/family_check.h"
#include "trainer/strategy/make_strategy.h"

namespace farstep {

std::size_t RunConfig::site_id(const std::string& site) const {
  std::string listed;
  for (std::size_t id = 0; id < sites.size(); ++id) {
    if (sites[id].name == site) return id;
    listed += (id == 0 ? "" : ", ") + sites[id].name;
  }
  throw ConfigError(fmt::format("site '{}' does not take part in run '{}'; its sites are {}", site,
                                name, listed.empty() ? "not named" : listed));
}

heterogeneity::RunSite RunConfig::site(const std::string& site) const {
  const auto found = std::ranges::find(sites, site, &heterogeneity::RunSite::name);
  if (found != sites.end()) return *found;
  if (!is_open() || !wan::is_site_name(site)) return sites[site_id(site)];
  heterogeneity::RunSite unnamed;
  unnamed.name = site;
  return unnamed;
}

const std::string& RunConfig::master() const {
  FARSTEP_CHECK(traits_of(strategy.kind).has_master, "{} has no master", name_of(strategy.kind));
  return sync.servers.empty() ? sites.front().name : sync.servers.front();
}

bool RunConfig::reads_data(const std::string& name_of_site) const {
  if (!trains(name_of_site)) return false;
  return !strategy.scatter || name_of_site == master();
}

namespace {

// sync.delay_steps counts the steps of a site that takes plan.base_steps of them. Where no site
// does, the number would mean another delay than it says.
void check_steps(const RunConfig& run, const std::string& file) {
  const JsonPath sites{file, "sites"};
  bool is_unit_taken = run.is_open();  // by the sites that it does not name
  for (std::size_t id = 0; id < run.sites.size(); ++id) {
    const int64_t steps = run.sites[id].local_steps.value_or(run.plan.base_steps);
    is_unit_taken = is_unit_taken || steps == run.plan.base_steps;
    if (run.sites[id].local_steps) {
      run.sync.require_room(sites.element(id).member("local_steps"), steps, run.plan.base_steps);
    }
  }
  if (run.sync.delay_steps == 0 || is_unit_taken) return;
  JsonPath{file, "plan.base_steps"}.fail(
      fmt::format("is {}, which is local_steps of no site; sync.delay_steps counts steps of a site "
                  "that takes so many: set it to the local_steps of one of them, such as {}",
                  run.plan.base_steps, *run.sites.front().local_steps));
}

void check_numbers(const RunConfig& run, const std::string& file) {
  const auto sites = std::ssize(run.sites);
  const JsonPath max_sites{file, "max_sites"};
  if (run.max_sites && *run.max_sites < sites) {
    max_sites.fail(fmt::format("is {}; `sites` has {}", *run.max_sites, sites));
  }
  if (sites == 0 && !(run.is_open() && run.min_sites)) {
    JsonPath{file, "sites"}.fail(
        "is empty: name the sites, or say with min_sites and max_sites how many there may be");
  }
  if (run.min_sites > run.most_sites()) {
    JsonPath{file, "min_sites"}.fail(
        fmt::format("is {}; the run has {} sites", *run.min_sites, run.most_sites()));
  }
  // The others must be able to plan for a site of which they know nothing.
  const bool needs_profiles = run.plan.policy != heterogeneity::Policy::kUniform &&
                              !(learns(run.plan.policy) && run.plan.replan);
  if (run.is_open() && needs_profiles) {
    max_sites.fail(fmt::format(
        "is more than `sites` has, and plan.policy {} needs the profile of every site: take "
        "uniform, or hybrid with plan.replan",
        name_of(run.plan.policy)));
  }
}

// What one word, strategy.kind, decides.
void complete(RunConfig& run, const Json& json) {
  complete_exchange(run.sync, run.strategy.kind, json);
  if (run.sync.servers.empty()) {
    for (const auto& site : run.sites) {
      if (!site.trains) run.sync.servers.push_back(site.name);
    }
  }
  if (!traits_of(run.strategy.kind).steps_together) return;
  run.plan.equal_steps = true;
  const auto deadlines = json.find("deadlines");
  const bool is_given = deadlines != json.end() && deadlines->contains("pause_seconds");
  if (!is_given) run.deadlines.pause_seconds = 0;
}

// Sites that step together hold the same state after each step. None can go on without another, or
// take more steps than another.
void check_steps_together(const RunConfig& run, const std::string& file) {
  const auto kind = name_of(run.strategy.kind);
  const auto refuse = [&](const char* field, const std::string& what) {
    JsonPath{file, field}.fail(
        fmt::format("{}; with strategy.kind {} all sites take every step together", what, kind));
  };
  const auto sites = std::ssize(run.sites);
  if (run.is_open()) refuse("max_sites", "is more than `sites` has");
  if (run.min_sites && *run.min_sites < sites) {
    refuse("min_sites", fmt::format("is {} of {} sites", *run.min_sites, sites));
  }
  if (run.deadlines.pause_seconds > 0) {
    refuse("deadlines.pause_seconds", "is above 0: the sites would wait for one that is lost");
  }
  if (run.plan.policy == heterogeneity::Policy::kStepsByTflops) {
    refuse("plan.policy", "gives the sites different numbers of steps");
  }
  if (run.plan.round_end == heterogeneity::RoundEnd::kDeadline) {
    refuse("plan.round_end", "lets the sites take different numbers of steps");
  }
  for (std::size_t id = 0; id < run.sites.size(); ++id) {
    const auto& steps = run.sites[id].local_steps;
    if (!steps || *steps == run.plan.base_steps) continue;
    JsonPath{file, "sites"}
        .element(id)
        .member("local_steps")
        .fail(fmt::format(
            "is {}, and plan.base_steps is {}; with strategy.kind {} all sites take every "
            "step together",
            *steps, run.plan.base_steps, kind));
  }
}

// The master draws for all sites, and knows of their work what it has planned.
void check_scatter(const RunConfig& run, const std::string& file) {
  run.strategy.validate({file, "strategy"});
  if (!run.strategy.scatter || run.data.order == DataOrder::kShuffled) return;
  JsonPath{file, "data.order"}.fail(
      "is sequential, by which each site counts its own examples; with strategy.scatter the master "
      "draws for all: set it to shuffled");
}

// Sites that serve alone.
void check_servers(const RunConfig& run, const std::string& file) {
  const JsonPath sites{file, "sites"};
  for (std::size_t id = 0; id < run.sites.size(); ++id) {
    const auto& site = run.sites[id];
    if (site.trains) continue;
    const auto path = sites.element(id);
    if (run.strategy.kind != outer_optimizer::StrategyKind::kParameterServer) {
      path.member("trains").fail(
          fmt::format("is false, and strategy.kind is {}: only with parameter_server can a site "
                      "serve alone",
                      name_of(run.strategy.kind)));
    }
    if (std::ranges::count(run.sync.servers, site.name) == 0) {
      path.member("trains").fail(
          fmt::format("is false, and sync.servers does not name {}: it would have nothing to do; "
                      "name it there, or let it train",
                      site.name));
    }
    const char* pinned = site.local_steps   ? "local_steps"
                         : site.batch       ? "batch"
                         : site.micro_batch ? "micro_batch"
                                            : nullptr;
    if (pinned) path.member(pinned).fail("is given, and `trains` is false: leave it out");
  }
  if (!run.sites.empty() && !run.is_open() &&
      std::ranges::none_of(run.sites, &heterogeneity::RunSite::trains)) {
    sites.fail("has no site that trains");
  }
}

// Membership knows names and contributions, but not what is in proportion.
wan::DeltaJudge judge_by(outer_optimizer::OutlierRule rule) {
  return
      [rule](std::span<const std::string> sites, std::span<const wan::Contribution> contributions) {
        std::vector<outer_optimizer::Work> works;
        std::vector<std::optional<outer_optimizer::DeltaFigures>> figures;
        for (const auto& contribution : contributions) {
          works.push_back(contribution.work);
          figures.push_back(contribution.figures);
        }
        const auto verdicts = judge(rule, works, figures);
        std::vector<wan::Outlier> outliers;
        for (std::size_t place = 0; place < sites.size(); ++place) {
          const auto& [is_left_out, reason] = verdicts[place];
          if (!reason.empty()) outliers.push_back({sites[place], is_left_out, reason});
        }
        return outliers;
      };
}

}  // namespace

StrategySettings strategy_settings(const RunConfig& run) {
  return {.outer = run.outer,
          .sync = run.sync,
          .base_steps = run.plan.base_steps,
          .bucket_bytes = run.strategy.bucket_bytes};
}

RunConfig run_config_from_json(const Json& json, const std::string& file) {
  auto run = read_json<RunConfig>(json, file);
  complete(run, json);
  const JsonPath sites{file, "sites"};
  std::set<std::string> names;
  for (std::size_t id = 0; id < run.sites.size(); ++id) {
    // Names become folders, and parts of keys at the coordinator.
    const auto& name = run.sites[id].name;
    if (!wan::is_site_name(name)) {
      sites.element(id).member("name").fail(
          "'" + name +
          "' is empty, too long, or has characters other than letters, digits, - and _");
    }
    if (!names.insert(name).second) {
      sites.element(id).member("name").fail("'" + name + "' stands twice");
    }
  }
  check_servers(run, file);
  check_scatter(run, file);
  check_family(run, file);
  run.sync.validate({file, "sync"}, run.plan.base_steps);
  check_steps(run, file);
  const JsonPath servers{file, "sync.servers"};
  for (std::size_t i = 0; i < run.sync.servers.size(); ++i) {
    if (!names.contains(run.sync.servers[i])) {
      servers.element(i).fail("'" + run.sync.servers[i] + "' is no site of the run");
    }
  }
  check_numbers(run, file);
  const auto& strategy = run.strategy.kind;
  check_strategy(strategy, strategy_settings(run), {file, "strategy"});
  if (traits_of(strategy).steps_together) check_steps_together(run, file);
  if (run.plan.wan_target &&
      (!traits_of(strategy).can_be_retuned || !traits_of(run.sync.exchange).can_be_retuned)) {
    JsonPath{file, "plan.wan_target"}.fail(
        "chooses codec, fragments and delay, which only strategy.kind low_communication or "
        "local_sgd "
        "with sync.exchange direct can change: set both so, or the target to null");
  }
  check_batch_growth(run.plan, run.sites, file);
  check_round_bound(run.plan, file);
  run.deadlines.validate(file);
  return run;
}

void require_majority(const RunConfig& run, const std::string& file) {
  if (run.is_open()) {
    JsonPath{file, "max_sites"}.fail(
        "is more than `sites` has: with stand-by coordinators all sites must be named, or two "
        "parts of the run could go on without each other");
  }
  const auto sites = std::ssize(run.sites);
  const auto least = sites / 2 + 1;
  if (run.min_sites.value_or(sites) >= least) return;
  JsonPath{file, "min_sites"}.fail(fmt::format(
      "is {}; with stand-by coordinators it must be at least {}, more than half of the sites, or "
      "two parts of the run could go on without each other",
      *run.min_sites, least));
}

wan::ServedRun served_run(const RunConfig& run, std::optional<int64_t> place) {
  wan::ServedRun served{.config = to_json(run),
                        .sites = {},
                        .fragments = run.sync.fragments,
                        .min_sites = run.min_sites,
                        .max_sites = run.max_sites,
                        .takes_newcomers = !traits_of(run.strategy.kind).steps_together,
                        .judge = judge_by(run.sync.outliers),
                        .place = place};
  for (const auto& site : run.sites) served.sites.push_back(site.name);
  return served;
}

}  // namespace farstep
