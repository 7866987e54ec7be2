// A scenario is checked as a whole before anything is simulated. Every later function may then rely
// on names, profiles and links that fit together.
#include "heterogeneity/simulate/scenario.h"

#include <algorithm>
#include <map>
#include <set>

#include "heterogeneity/policy/policy.h"
#include "heterogeneity/policy/round_bound.h"
#include "trainer/config/config_file.h"

namespace farstep::heterogeneity {

namespace {

namespace fs = std::filesystem;

// A site, and where the files describe it and its profile.
struct PlacedSite {
  ScenarioSite site;
  JsonPath path, profile_path;
};

void check_site(const ScenarioSite& site, const JsonPath& path, int64_t rounds) {
  if (site.profile.has_value() == !site.profile_file.empty()) {
    path.fail("must have one of profile and profile_file");
  }
  for (std::size_t i = 1; i < site.speed.size(); ++i) {
    if (site.speed[i].round > site.speed[i - 1].round) continue;
    path.member("speed").element(i).member("round").fail(fmt::format(
        "is {}; must be above the one before, {}", site.speed[i].round, site.speed[i - 1].round));
  }
  if (site.joins_at_round > rounds) {
    path.member("joins_at_round")
        .fail(fmt::format("is {}; the run has {} rounds", site.joins_at_round, rounds));
  }
}

// Returns a name such as "asia-07": numbers have equal width, so that files and tables sort in
// order.
std::string numbered(const std::string& name, int64_t number, int64_t count) {
  return fmt::format("{}-{:0{}}", name, number, std::to_string(count).size());
}

// Sites of one `count` share a profile, which is read once. Each becomes a site of its own, as the
// planner knows no groups.
std::vector<PlacedSite> spell_out(const Scenario& scenario, const std::string& file,
                                  const fs::path& folder) {
  std::vector<PlacedSite> placed;
  for (std::size_t i = 0; i < scenario.sites.size(); ++i) {
    auto site = scenario.sites[i];
    const auto path = JsonPath{file, "sites"}.element(i);
    check_site(site, path, scenario.rounds);
    auto profile_path = path.member("profile");
    if (!site.profile) {
      const auto profile_file = (folder / site.profile_file).lexically_normal();
      profile_path = {profile_file.string(), ""};
      site.profile = site_profile_from_json(load_json(profile_file), profile_file.string());
    }
    const auto name = site.name.empty() ? site.profile->site : site.name;
    const auto count = std::exchange(site.count, 1);
    for (int64_t number = 1; number <= count; ++number) {
      site.name = count == 1 ? name : numbered(name, number, count);
      site.profile->site = site.name;
      placed.push_back({site, path, profile_path});
    }
  }
  return placed;
}

void check_names(const std::vector<PlacedSite>& placed) {
  std::map<std::string, const PlacedSite*> names;
  for (const auto& entry : placed) {
    const auto& name = entry.site.name;
    // Events go to a folder of the site's name.
    if (name == "." || name == ".." || name.empty() || fs::path(name).filename() != name) {
      entry.profile_path.member("site").fail("'" + name + "' cannot be the name of a folder");
    }
    const auto [other, is_new] = names.emplace(name, &entry);
    if (is_new) continue;
    const auto& first = other->second->profile_path;
    entry.profile_path.member("site").fail(
        fmt::format("'{}' is the site of {} already; give one of them another name", name,
                    first.path.empty() ? first.file : first.path));
  }
  // Peers are checked after all names are known, because a link may name a later site.
  for (const auto& entry : placed) {
    const auto& links = entry.site.profile->links;
    for (std::size_t i = 0; i < links.size(); ++i) {
      if (names.contains(links[i].peer)) continue;
      entry.profile_path.member("links").element(i).member("peer").fail(
          fmt::format("'{}' is no site of the simulation", links[i].peer));
    }
  }
}

void check_profiles(const std::vector<PlacedSite>& placed, const PlanConfig& plan) {
  const PlacedSite* with_model = nullptr;
  for (const auto& entry : placed) {
    const auto& profile = *entry.site.profile;
    SiteKnowledge truth;
    truth.profile = profile;
    // Asked of the predictor itself, which the simulation calls later.
    if (entry.site.trains &&
        !step_seconds(truth, plan.base_batch, plan.micro_batch.value_or(plan.base_batch))) {
      entry.profile_path.member("devices").fail(fmt::format(
          "{} has a device without step_seconds: there is nothing to simulate", profile.site));
    }
    if (!profile.model) continue;
    if (with_model && profile.model != with_model->site.profile->model) {
      entry.profile_path.member("model").fail(
          fmt::format("differs from that of {}", with_model->site.name));
    }
    with_model = &entry;
  }
}

void check_regions(const Scenario& scenario, const std::string& file) {
  std::set<std::string> used;
  for (const auto& site : scenario.sites) used.insert(site.region);
  std::set<std::pair<std::string, std::string>> pairs;
  for (std::size_t i = 0; i < scenario.regions.size(); ++i) {
    const auto path = JsonPath{file, "regions"}.element(i);
    const auto& link = scenario.regions[i];
    for (const auto& [member, region] : {std::pair{"from", link.from}, std::pair{"to", link.to}}) {
      if (!used.contains(region)) path.member(member).fail("no site is in '" + region + "'");
    }
    // A way holds in both directions, so the reverse would be a second figure for it.
    if (!pairs.insert(std::minmax(link.from, link.to)).second) {
      path.fail(fmt::format("'{}' and '{}' stand twice", link.from, link.to));
    }
  }
}

void check_plan(const PlanConfig& plan, const std::string& file) {
  check_round_bound(plan, file);
  if (!plan.batch_growth) return;
  JsonPath{file, "plan.batch_growth"}.fail(
      "follows the noise of gradients, which a simulation does not have: leave it out, and "
      "simulate with the base_batch that the run would have");
}

// Sites that serve alone have something to serve, and somebody to serve.
void check_servers(const Scenario& scenario, const std::string& file) {
  const JsonPath sites{file, "sites"};
  if (std::ranges::none_of(scenario.sites, &ScenarioSite::trains)) {
    sites.fail("has no site that trains");
  }
  for (const auto& site : scenario.sites) {
    if (site.trains) continue;
    const bool is_server = std::ranges::count(scenario.sync.servers, site.name) > 0;
    if (is_server && scenario.strategy.kind == outer_optimizer::StrategyKind::kParameterServer)
      continue;
    sites.fail(
        fmt::format("{} does not train: that needs strategy.kind parameter_server, and its "
                    "name in sync.servers",
                    site.name));
  }
}

// Throws if the simulation does not support the scenario's strategy and `sync`. Other settings of a
// run's `sync` are accepted.
void check_sync(const Scenario& scenario, const std::string& file) {
  const auto& sync = scenario.sync;
  sync.validate({file, "sync"}, scenario.plan.base_steps);
  const auto refuse = [&](bool is_unknown, const char* member) {
    if (!is_unknown) return;
    JsonPath{file, "sync"}.member(member).fail("is not simulated: only equal parts are");
  };
  refuse(sync.shares != outer_optimizer::SharesRule::kEqual, "shares");
  refuse(sync.partition != outer_optimizer::PartitionRule::kBytes, "partition");
  const JsonPath strategy{file, "strategy.kind"};
  if (scenario.strategy.kind == outer_optimizer::StrategyKind::kEagerUpdates)
    strategy.fail("is not simulated");
  const bool joins =
      std::ranges::any_of(scenario.sites, [](const auto& site) { return site.joins_at_round > 1; });
  if (!scenario.plan.equal_steps) return;
  if (joins) strategy.fail("takes no site in, and one joins after round 1");
  if (sync.fragments > 1 || sync.delay_steps > 0) {
    strategy.fail("sums whole gradients: sync.fragments must be 1, sync.delay_steps 0");
  }
}

// By default those that do nothing else serve.
void name_servers(Scenario& scenario) {
  if (!scenario.sync.servers.empty()) return;
  for (const auto& site : scenario.sites) {
    if (!site.trains) scenario.sync.servers.push_back(site.name);
  }
}

// What strategy.kind decides.
void complete(Scenario& scenario, const Json& json) {
  const auto kind = scenario.strategy.kind;
  complete_exchange(scenario.sync, kind, json);
  scenario.plan.equal_steps = traits_of(kind).steps_together;
  // The master alone adds up.
  auto& servers = scenario.sync.servers;
  if (kind == outer_optimizer::StrategyKind::kDataParallelMaster && servers.size() > 1)
    servers.resize(1);
}

}  // namespace

std::size_t Scenario::master() const {
  if (sync.servers.empty()) return 0;
  const auto found = std::ranges::find(sites, sync.servers.front(), &ScenarioSite::name);
  return found == sites.end() ? 0 : static_cast<std::size_t>(found - sites.begin());
}

// Sites are spelled out first, so that all checks are about sites with a name and a profile of
// their own.
Scenario scenario_from_json(const Json& json, const std::string& file, const fs::path& folder) {
  auto scenario = read_json<Scenario>(json, file);
  complete(scenario, json);
  scenario.strategy.validate({file, "strategy"});
  check_plan(scenario.plan, file);
  const auto placed = spell_out(scenario, file, folder);
  check_names(placed);
  check_profiles(placed, scenario.plan);
  scenario.sites.clear();
  for (const auto& entry : placed) {
    scenario.sites.push_back(entry.site);
    // The model is said once, in any profile; check_profiles() has seen that they agree.
    if (const auto& model = entry.site.profile->model) {
      if (!scenario.parameters) scenario.parameters = model->parameters;
      if (!scenario.sequence_length) scenario.sequence_length = model->sequence_length;
    }
  }
  scenario.parameters = scenario.parameters.value_or(0);
  scenario.sequence_length = scenario.sequence_length.value_or(1);
  // As token_form() has them: the inputs, and the last target.
  const auto token_bytes = static_cast<int64_t>(sizeof(int64_t));
  scenario.example_bytes =
      scenario.example_bytes.value_or(token_bytes * (*scenario.sequence_length + 1));
  check_regions(scenario, file);
  name_servers(scenario);
  check_servers(scenario, file);
  check_sync(scenario, file);

  const auto& sites = scenario.sites;
  if (scenario.coordinator.empty()) scenario.coordinator = sites.front().name;
  if (std::none_of(sites.begin(), sites.end(),
                   [&scenario](const auto& site) { return site.name == scenario.coordinator; })) {
    JsonPath{file, "coordinator"}.fail("'" + scenario.coordinator +
                                       "' is no site of the simulation");
  }
  if (std::none_of(sites.begin(), sites.end(),
                   [](const auto& site) { return site.joins_at_round == 1; })) {
    JsonPath{file, "sites"}.fail("no site takes part from round 1 on");
  }
  return scenario;
}

}  // namespace farstep::heterogeneity
