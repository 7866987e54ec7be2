// The defaults are those of the guide and the README, so that who follows either gets the same run.
#include "trainer/init/init_plan.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "trainer/base/error.h"
#include "wan/sockets/host_port.h"

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

constexpr int kHighestFirstPort = 65'000;  // so that those that follow it exist

// Without keys each site has one address for all others, so IPv4 and IPv6 cannot meet. What a name
// is shows at the sites.
void require_one_family(const InitPlan& plan) {
  const PlannedSite* ip4 = nullptr;
  const PlannedSite* ip6 = nullptr;
  for (const auto& site : plan.sites) {
    if (!wan::usual_ip(site.address)) continue;
    (site.address.find(':') == std::string::npos ? ip4 : ip6) = &site;
  }
  if (ip4 == nullptr || ip6 == nullptr) return;
  throw ConfigError(fmt::format(
      "farstep init: --no-keys: {} has the IPv4 address {} and {} the IPv6 address {}, and without "
      "keys sites of both kinds cannot connect: give all sites addresses of one kind, or use keys",
      ip4->name, ip4->address, ip6->name, ip6->address));
}

}  // namespace

PlannedSite parse_planned_site(const std::string& text) {
  const auto equals = text.find('=');
  PlannedSite site{.name = text.substr(0, equals), .address = "", .port = std::nullopt};
  if (equals == std::string::npos) return site;
  const auto field = "farstep init: --sites " + text;
  const auto place = text.substr(equals + 1);
  if (place.empty()) {
    throw ConfigError(
        fmt::format("{}: no address follows the =; a site behind NAT is a NAME alone", field));
  }
  const auto [host, port] = wan::parse_host_maybe_port(field, place);
  if (wan::is_any_host(host)) {
    throw ConfigError(fmt::format(
        "{}: {} stands for any address; name the one by which the others reach the site", field,
        host));
  }
  if (host.find('%') != std::string::npos) {
    throw ConfigError(
        fmt::format("{}: {} is link-local, and means something else at every machine: give the "
                    "site an address for that network, such as fd00::5",
                    field, host));
  }
  if (port && (*port < 1 || *port > kHighestFirstPort)) {
    throw ConfigError(
        fmt::format("{}: the port is {}; must be from 1 to {}", field, *port, kHighestFirstPort));
  }
  site.address = host;
  if (port) site.port = *port;
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
  if (!plan.has_keys) require_one_family(plan);
  if (unreachable.size() > 1) {
    fail(
        fmt::format("--sites: {} have no address. Two such sites cannot connect to each other: at "
                    "most one may have none",
                    fmt::join(unreachable, ", ")));
  }
}

void set_devices(InitPlan& plan, const std::vector<std::string>& texts) {
  const auto names = enum_names(DeviceKind{});
  for (const auto& text : texts) {
    const auto equals = text.find('=');
    const auto kind = equals == std::string::npos ? text : text.substr(equals + 1);
    const auto found = std::ranges::find(names, kind);
    if (found == names.end()) {
      throw ConfigError(
          fmt::format("farstep init: --device {}: is one of {}, or NAME= and one of "
                      "them",
                      text, fmt::join(names, ", ")));
    }
    const auto device = static_cast<DeviceKind>(found - names.begin());
    if (equals == std::string::npos) {
      plan.device = device;
      continue;
    }
    const auto site = std::ranges::find(plan.sites, text.substr(0, equals), &PlannedSite::name);
    if (site == plan.sites.end()) {
      throw ConfigError(fmt::format(
          "farstep init: --device {}: no site has that name; --sites gives them", text));
    }
    site->device = device;
  }
}

DeviceKind best_device(const InitPlan& plan) {
  const auto has_gpu = [&](const PlannedSite& site) {
    return site.device.value_or(plan.device) == DeviceKind::kCuda;
  };
  return std::ranges::any_of(plan.sites, has_gpu) ? DeviceKind::kCuda : DeviceKind::kCpu;
}

const PlannedSite& site_of(const InitPlan& plan, std::string_view name) {
  const auto found = std::ranges::find(plan.sites, name, &PlannedSite::name);
  FARSTEP_CHECK(found != plan.sites.end(), "no planned site {}", name);
  return *found;
}

}  // namespace farstep
