#include "trainer/settings/site_config.h"

#include <algorithm>
#include <set>

#include "trainer/config/json_fields.h"
#include "wan/admission/served_run.h"
#include "wan/sockets/host_port.h"

namespace farstep {

namespace {

void check_emulation(const EmulateConfig& emulate, const JsonPath& path) {
  const int given = emulate.step_seconds.has_value() + emulate.sequence_seconds.has_value() +
                    emulate.times.has_value();
  if (given != 1) path.fail("must have one of step_seconds, sequence_seconds and times");
  const auto& changes = emulate.changes;
  for (std::size_t i = 1; i < changes.size(); ++i) {
    if (changes[i].step > changes[i - 1].step) continue;
    path.member("changes").element(i).member("step").fail(fmt::format(
        "is {}; must be above the one before, {}", changes[i].step, changes[i - 1].step));
  }
}

void check_cpu(const CpuConfig& cpu, const JsonPath& path) {
  const auto widest = widest_instruction_set();
  if (cpu.instructions.value_or(widest) <= widest) return;
  path.member("instructions")
      .fail(fmt::format("is {}; this processor has no more than {}", name_of(*cpu.instructions),
                        name_of(widest)));
}

void check_cores(const std::vector<DeviceConfig>& devices, const JsonPath& path) {
  std::set<int64_t> taken;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto& cores = devices[i].cores;
    if (cores.empty()) continue;
    const auto list = path.element(i).member("cores");
    if (devices[i].kind != DeviceKind::kCpu) list.fail("only a cpu slice has cores");
    if (std::ssize(cores) != devices[i].threads) {
      list.fail(fmt::format("has {} cores for {} threads; must have one a thread", cores.size(),
                            devices[i].threads));
    }
    for (std::size_t k = 0; k < cores.size(); ++k) {
      if (cores[k] < 0) list.element(k).fail(fmt::format("is {}; must be at least 0", cores[k]));
      if (!taken.insert(cores[k]).second) {
        list.element(k).fail(fmt::format("is {}, which stands twice", cores[k]));
      }
    }
  }
}

// The name of a member in messages of what reads its text.
std::string field(const JsonPath& path) {
  return fmt::format("{}: {}", path.file, path.path);
}

// Returns the endpoint in its usual form. A site that does not listen there must be able to
// connect.
std::string check_endpoint(const std::string& endpoint, bool connects, const JsonPath& path) {
  const auto place = wan::parse_endpoint(field(path), endpoint);
  if (connects && wan::is_any_host(place.host)) {
    path.fail(
        fmt::format("is {}, which stands for any address: name the one by which this site "
                    "reaches the coordinator",
                    endpoint));
  }
  if (connects && place.port == 0) {
    path.fail(fmt::format("is {}: name the port at which the coordinator listens", endpoint));
  }
  return place.text();
}

void check_addresses(const SiteConfig& site, const JsonPath& path) {
  const auto& network = site.network;
  for (const auto& [name, host] :
       {std::pair("address", &network.address), std::pair("listen", &network.listen)}) {
    if (!host->empty()) wan::parse_host(field(path.member("network").member(name)), *host);
  }
  const bool has_none = network.address.empty() && network.interface.empty();
  const bool has_both = !network.address.empty() && !network.interface.empty();
  if (has_both || (has_none && network.keys.empty())) {
    path.member("network").fail(
        "must have either address or interface: the one that the other sites can reach");
  }
  if (network.keys.empty()) {
    if (network.listen.empty()) return;
    path.member("network").member("listen").fail("is for secure links: set network.keys too");
  }
  if (!site.coordinator.endpoints.empty()) return;
  if (site.coordinator.host == site.coordinator.site.empty()) return;
  path.member("coordinator")
      .member("site")
      .fail(site.coordinator.host
                ? "is not needed: this site hosts the coordinator"
                : "is missing; with network.keys it names the site whose key the coordinator has");
}

void check_coordinators(const SiteConfig& site, const JsonPath& path) {
  const auto& [endpoint, endpoints, host, named_site, journal] = site.coordinator;
  if (endpoint.empty() == endpoints.empty()) {
    path.fail("must have either endpoint or endpoints: where the coordinator listens");
  }
  if (endpoints.empty()) {
    check_endpoint(endpoint, !host, path.member("endpoint"));
    return;
  }
  if (host || !named_site.empty()) {
    path.member(host ? "host" : "site")
        .fail("is for endpoint: with endpoints, set the site of each");
  }
  const auto list = path.member("endpoints");
  if (std::ssize(endpoints) > wan::kMostCoordinators) {
    list.fail(fmt::format("has {}; must be at most {}", endpoints.size(), wan::kMostCoordinators));
  }
  std::set<std::string> names, addresses;
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    const auto& one = endpoints[i];
    const auto place =
        check_endpoint(one.endpoint, /*connects=*/true, list.element(i).member("endpoint"));
    if (!addresses.insert(place).second) {
      list.element(i).member("endpoint").fail("is " + one.endpoint + ", which stands twice");
    }
    if (one.site.empty() && !site.network.keys.empty()) {
      list.element(i).member("site").fail("is missing; with network.keys it names the key");
    }
    if (!one.site.empty() && !names.insert(one.site).second) {
      list.element(i).member("site").fail("is " + one.site + ", which stands twice");
    }
  }
}

}  // namespace

std::vector<CoordinatorPlace> SiteConfig::coordinators() const {
  if (!coordinator.endpoints.empty()) return coordinator.endpoints;
  return {{.endpoint = coordinator.endpoint, .site = coordinator.host ? name : coordinator.site}};
}

std::optional<std::size_t> SiteConfig::hosted_coordinator() const {
  const auto& endpoints = coordinator.endpoints;
  if (endpoints.empty() && coordinator.host) return 0;
  const auto own = std::ranges::find(endpoints, name, &CoordinatorPlace::site);
  if (own == endpoints.end()) return std::nullopt;
  return own - endpoints.begin();
}

std::vector<DataFolder> SiteConfig::data_folders() const {
  if (data.empty()) return mixture;
  return {{.folder = data}};
}

void SiteConfig::validate(const std::string& file) const {
  const JsonPath path{file, ""};
  if (!data.empty() && !mixture.empty()) {
    path.member("mixture").fail("stands beside data; name either one folder or several");
  }
  check_coordinators(*this, path.member("coordinator"));
  check_addresses(*this, path);
  if (const auto& emulate = network.emulate) {
    emulate->validate(path.member("network").member("emulate"));
  }
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (const auto& emulate = devices[i].emulate) {
      check_emulation(*emulate, path.member("devices").element(i).member("emulate"));
    }
  }
  check_cpu(cpu, path.member("cpu"));
  check_cores(devices, path.member("devices"));
  if (hosted_coordinator() && run.empty()) {
    path.member("run").fail("is missing; the site that hosts a coordinator holds the run file");
  }
}

}  // namespace farstep
