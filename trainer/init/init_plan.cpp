// The defaults are those of the guide and the README, so that who follows either gets the same run.
#include "trainer/init/init_plan.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "trainer/base/error.h"

namespace farstep {

namespace {

constexpr WorkDefaults kCpuWork{.preset = ModelPreset::kTiny,
                                .rounds = 20,
                                .base_steps = 50,
                                .base_batch = 8,
                                .sequence_length = 128,
                                .micro_batch = std::nullopt};
constexpr WorkDefaults kGpuWork{.preset = ModelPreset::k150M,
                                .rounds = 200,
                                .base_steps = 500,
                                .base_batch = 64,
                                .sequence_length = 1024,
                                .micro_batch = 8};

// The files of a run's folder that are no site's.
constexpr std::string_view kTakenNames[] = {"run", "coordinator", "keys"};

int64_t parse_port(const std::string& text, const std::string& port) {
  int64_t number = 0;
  const auto* end = port.data() + port.size();
  const auto [rest, error] = std::from_chars(port.data(), end, number);
  if (error != std::errc() || rest != end || number < 1 || number > 65'000) {
    throw ConfigError(fmt::format(
        "farstep init: --sites {}: the port is \"{}\"; must be from 1 to 65000", text, port));
  }
  return number;
}

}  // namespace

PlannedSite parse_planned_site(const std::string& text) {
  const auto equals = text.find('=');
  PlannedSite site{.name = text.substr(0, equals), .address = "", .port = std::nullopt};
  if (equals == std::string::npos) return site;
  const auto place = text.substr(equals + 1);
  std::string port;
  if (place.starts_with('[')) {
    const auto end = place.find(']');
    const auto after = end == std::string::npos ? "" : place.substr(end + 1);
    if (end == std::string::npos || (!after.empty() && !after.starts_with(':'))) {
      throw ConfigError(fmt::format("farstep init: --sites {}: must be NAME=[ADDRESS]:PORT", text));
    }
    site.address = place.substr(1, end - 1);
    if (!after.empty()) site.port = parse_port(text, after.substr(1));
  } else if (std::ranges::count(place, ':') == 1) {
    const auto colon = place.find(':');
    site.address = place.substr(0, colon);
    site.port = parse_port(text, place.substr(colon + 1));
  } else {
    site.address = place;  // a name, IPv4, or IPv6 without a port
  }
  if (site.address.empty()) {
    throw ConfigError(fmt::format(
        "farstep init: --sites {}: no address follows the =; a site behind NAT is a NAME alone",
        text));
  }
  return site;
}

const WorkDefaults& work_defaults(DeviceKind kind) {
  return kind == DeviceKind::kCuda ? kGpuWork : kCpuWork;
}

// docs/guide/model_and_settings.md has the table, and the runs that it is from.
OuterAdvice outer_advice(int64_t rounds, int64_t base_steps, int64_t tokens_a_step) {
  const bool is_much = rounds >= 8 && base_steps >= 50 && tokens_a_step >= 1000;
  return is_much ? OuterAdvice{.learning_rate = 1.0, .momentum = 0.7}
                 : OuterAdvice{.learning_rate = 0.7, .momentum = 0.5};
}

int64_t least_sites_of(std::size_t num_sites) {
  return num_sites <= 2 ? 1 : static_cast<int64_t>(num_sites / 2) + 1;
}

void check_plan(const InitPlan& plan) {
  const auto fail = [](const std::string& text) { throw ConfigError("farstep init: " + text); };
  std::set<std::string> names;
  std::vector<std::string> unreachable;
  for (const auto& site : plan.sites) {
    if (!names.insert(site.name).second) {
      fail(fmt::format("--sites: {} stands twice", site.name));
    }
    if (std::ranges::find(kTakenNames, site.name) != std::end(kTakenNames)) {
      fail(fmt::format("--sites: a site cannot be called {}: its file would take another's place",
                       site.name));
    }
    if (site.address.empty()) unreachable.push_back(site.name);
  }
  if (!names.contains(plan.host)) {
    fail(fmt::format("--host: {} is none of the sites {}", plan.host, fmt::join(names, ", ")));
  }
  if (site_of(plan, plan.host).address.empty()) {
    fail(
        fmt::format("--host: {} has no address, and all sites connect to the host: give it one, "
                    "--sites {}=ADDRESS, or name another host",
                    plan.host, plan.host));
  }
  if (!plan.has_keys && !unreachable.empty()) {
    fail(
        fmt::format("--no-keys: {} has no address, which is possible with keys only: give it one, "
                    "--sites {}=ADDRESS",
                    unreachable.front(), unreachable.front()));
  }
  if (unreachable.size() > 1) {
    fail(
        fmt::format("--sites: {} have no address. Two such sites cannot connect to each other: at "
                    "most one may have none",
                    fmt::join(unreachable, ", ")));
  }
}

const PlannedSite& site_of(const InitPlan& plan, std::string_view name) {
  const auto found = std::ranges::find(plan.sites, name, &PlannedSite::name);
  FARSTEP_CHECK(found != plan.sites.end(), "no planned site {}", name);
  return *found;
}

}  // namespace farstep
