// Everything is read back before the first file is written: a folder with half of a run helps
// nobody.
#include "trainer/init/config_files.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/settings/run_config.h"
#include "trainer/settings/site_config.h"
#include "wan/link/lanes.h"
#include "wan/secure/certificates.h"
#include "wan/secure/credentials.h"
#include "wan/secure/key_folder.h"
#include "wan/sockets/host_port.h"

namespace farstep {

namespace {

namespace fs = std::filesystem;

constexpr int64_t kFirstPort = 7400;
constexpr const char* kKeyFolder = "keys";
constexpr const char* kOutput = "runs";

// A path that is relative to the working folder, as one that is relative to `folder`.
std::string seen_from(const fs::path& folder, const std::string& path) {
  if (fs::path(path).is_absolute()) return path;
  const auto here = fs::absolute(folder).lexically_normal();
  const auto there = fs::absolute(path).lexically_normal();
  return there.lexically_relative(here).string();
}

// The most ports that a site without keys takes for its links, as `sync.lanes` is by default: the
// lanes of that many sites, for each of them. When sites are lost, those that are left may have
// more lanes with each other.
int64_t most_link_ports(int64_t sites) {
  const auto lanes = RunConfig{}.sync.lanes;
  int64_t most = 0;
  for (int64_t left = 1; left <= sites; ++left) {
    most = std::max(most, left * lanes.value_or(wan::lanes_for(left)));
  }
  return most;
}

// Ports of every site: with keys one, without keys those of its links, after the coordinator's at
// the host. Sites of one machine have different ones.
class Ports {
 public:
  explicit Ports(const InitPlan& plan) {
    const auto sites = static_cast<int64_t>(plan.sites.size());
    const int64_t own_ports = plan.has_keys ? 1 : most_link_ports(sites);
    std::map<std::string, int64_t> next;  // free port by address
    for (const auto& site : plan.sites) {
      if (site.address.empty()) continue;
      auto& free = next.try_emplace(site.address, kFirstPort).first->second;
      const int64_t first = site.port.value_or(free);
      const bool has_coordinator = !plan.has_keys && site.name == plan.host;
      // Data ports are kFirstPort + 1 on at every site, so that all can open the same range.
      const bool leaves_gap =
          !plan.has_keys && !has_coordinator && !site.port && first == kFirstPort;
      first_[site.name] = has_coordinator || leaves_gap ? first + 1 : first;
      if (site.name == plan.host) coordinator_ = first;
      free = first_[site.name] + own_ports;
      take(site, {site.name, has_coordinator ? first : first_[site.name], free});
    }
  }

  int64_t of(const std::string& site) const { return first_.at(site); }
  int64_t coordinator() const { return coordinator_; }

 private:
  struct Range {
    std::string site;
    int64_t first, end;
  };

  // Throws ConfigError if a site at the same address has one of the ports.
  void take(const PlannedSite& site, const Range& own) {
    auto& others = taken_[site.address];
    for (const auto& other : others) {
      if (own.first >= other.end || other.first >= own.end) continue;
      throw ConfigError(fmt::format(
          "farstep init: --sites: {} and {} share ports of {}: they need {} to {} and {} to {}; "
          "give {} a port from {} on, or leave it out",
          other.site, own.site, site.address, other.first, other.end - 1, own.first, own.end - 1,
          own.site, other.end));
    }
    others.push_back(own);
  }

  std::map<std::string, int64_t> first_;
  std::map<std::string, std::vector<Range>> taken_;  // by address
  int64_t coordinator_ = kFirstPort;
};

Json run_file(const InitPlan& plan, const fs::path& folder) {
  Json run;
  run["name"] = plan.run;
  for (const auto& site : plan.sites) {
    Json entry;
    entry["name"] = site.name;
    run["sites"].push_back(std::move(entry));
  }
  run["min_sites"] = least_sites_of(plan.sites.size());
  if (plan.model_from.empty()) {
    run["model"]["preset"] = std::string(name_of(plan.preset));
    if (plan.vocabulary) run["model"]["vocabulary"] = *plan.vocabulary;
  } else {
    run["model"]["from"] = fs::path(seen_from(folder, plan.model_from)).filename().string();
  }
  run["data"]["sequence_length"] = plan.sequence_length;
  // As the guide has it: fresh weights learn by larger steps than trained ones, and so small a
  // model by larger ones still.
  if (!plan.model_from.empty()) {
    run["inner"]["peak_learning_rate"] = 0.0001;
  } else if (plan.preset == ModelPreset::kTiny) {
    run["inner"]["peak_learning_rate"] = 0.003;
  }
  const auto outer =
      outer_advice(plan.rounds, plan.base_steps, plan.base_batch * plan.sequence_length);
  run["outer"] = {{"rounds", plan.rounds},
                  {"learning_rate", outer.learning_rate},
                  {"momentum", outer.momentum}};
  run["plan"] = {
      {"policy", "hybrid"}, {"base_steps", plan.base_steps}, {"base_batch", plan.base_batch}};
  if (plan.micro_batch) run["plan"]["micro_batch"] = *plan.micro_batch;
  return run;
}

Json site_file(const InitPlan& plan, const PlannedSite& site, const Ports& ports,
               const fs::path& folder) {
  const bool is_host = site.name == plan.host;
  const auto& host = site_of(plan, plan.host);
  Json file;
  file["name"] = site.name;
  file["run"] = "run.json";
  file["coordinator"]["endpoint"] =
      wan::HostPort{.host = host.address, .port = static_cast<int>(ports.coordinator())}.endpoint();
  if (is_host) {
    file["coordinator"]["host"] = true;
  } else if (plan.has_keys) {
    file["coordinator"]["site"] = plan.host;
  }
  auto network = Json::object();
  if (!site.address.empty()) {
    network["address"] = site.address;
    // With keys the host has the coordinator's port.
    if (!is_host || !plan.has_keys) network["port"] = ports.of(site.name);
  }
  if (plan.has_keys) network["keys"] = fmt::format("{}/sites/{}", kKeyFolder, site.name);
  file["network"] = std::move(network);
  Json device;
  const auto kind = site.device.value_or(plan.device);
  device["kind"] = std::string(name_of(kind));
  if (kind == DeviceKind::kCpu) device["threads"] = plan.threads;
  file["devices"].push_back(std::move(device));
  file["data"] = seen_from(folder, plan.data);
  if (!plan.model_from.empty()) {
    const auto models = fs::path(seen_from(folder, plan.model_from)).parent_path().string();
    file["models"] = models.empty() ? "." : models;
  }
  file["output"] = kOutput;
  return file;
}

void require_absent(const std::vector<ConfigFile>& files, const fs::path& keys) {
  std::vector<std::string> present;
  for (const auto& file : files) {
    if (fs::exists(file.path)) present.push_back(file.path.string());
  }
  if (!keys.empty() && fs::exists(keys)) present.push_back(keys.string());
  if (present.empty()) return;
  throw ConfigError(
      fmt::format("farstep init: there is {} already: name another --output, or replace the config "
                  "files with --force, which keeps keys that exist",
                  fmt::join(present, ", ")));
}

void require_same_run(const std::string& run, const std::string& owner, const fs::path& keys) {
  if (owner == run) return;
  throw ConfigError(
      fmt::format("farstep init: {} has the keys of run '{}', and this is '{}': name "
                  "another --output, or the run as its keys do",
                  keys.string(), owner, run));
}

// An authority made anew would certify other sites than those that have keys.
void require_no_sites(const fs::path& keys) {
  const auto sites = wan::site_key_folder(keys, "");
  if (!fs::exists(sites)) return;
  for (const auto& site : fs::directory_iterator(sites)) {
    if (!fs::exists(site.path() / "site.crt")) continue;
    throw ConfigError(
        fmt::format("farstep init: {} has keys of site {}, and not the authority.key that "
                    "certified them: bring that back, or name another --output",
                    keys.string(), site.path().filename().string()));
  }
}

void write_keys(const InitPlan& plan, const fs::path& keys) {
  constexpr int64_t kDays = 365;
  wan::check_certified_name(plan.run);
  for (const auto& site : plan.sites) wan::check_certified_name(site.name);
  // Before a key is made: what is refused leaves none behind.
  const auto owner = wan::run_of_key_folder(keys);
  if (!owner.empty()) require_same_run(plan.run, owner, keys);
  std::vector<std::string> missing;
  for (const auto& site : plan.sites) {
    const auto own = wan::site_key_folder(keys, site.name);
    if (fs::exists(own)) {
      require_same_run(plan.run, wan::Credentials::from_folder(own).identity().run, own);
    } else {
      missing.push_back(site.name);
    }
  }
  if (missing.empty()) return;
  if (!fs::exists(keys / "authority.key")) {
    require_no_sites(keys);
    wan::make_key_folder(keys, plan.run);
  }
  wan::add_site_keys(keys, missing, kDays);
}

}  // namespace

std::vector<ConfigFile> config_files(const InitPlan& plan, const fs::path& folder) {
  check_plan(plan);
  const Ports ports(plan);
  std::vector<ConfigFile> files{{folder / "run.json", run_file(plan, folder)}};
  run_config_from_json(files.front().content, files.front().path.string());
  for (const auto& site : plan.sites) {
    const auto path = folder / (site.name + ".json");
    files.push_back({path, site_file(plan, site, ports, folder)});
    read_json<SiteConfig>(files.back().content, path.string()).validate(path.string());
  }
  return files;
}

void write_run_folder(const InitPlan& plan, const fs::path& folder, bool force) {
  const auto files = config_files(plan, folder);
  const auto keys = plan.has_keys ? folder / kKeyFolder : fs::path();
  if (!force) require_absent(files, keys);
  make_folder(folder);
  if (plan.has_keys) write_keys(plan, keys);
  for (const auto& file : files) write_file_durably(file.path, file.content.dump(2) + "\n");
}

}  // namespace farstep
