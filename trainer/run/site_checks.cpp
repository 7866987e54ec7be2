// All that one site can find wrong alone, before it joins: once it has registered, every mistake
// costs all sites their waiting. The order is that of need, as later checks use what earlier ones
// have found.
#include "trainer/run/site_checks.h"

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "trainer/base/checksum.h"
#include "trainer/base/error.h"
#include "trainer/base/system/free_memory.h"
#include "trainer/inner/cores.h"
#include "trainer/model/device.h"
#include "trainer/peers/known_sites.h"
#include "trainer/peers/secure_port.h"
#include "trainer/peers/site_peers.h"
#include "wan/link/lanes.h"
#include "wan/membership/control_socket.h"
#include "wan/sockets/host_addresses.h"
#include "wan/sockets/local_address.h"
#include "wan/transport/mesh.h"

namespace farstep {

namespace {

namespace fs = std::filesystem;

using Found = std::optional<CheckResult>;

// What a site needs follows from its part in the run.
void require_part(const RunConfig& run, const SiteConfig& config) {
  const bool trains = run.trains(config.name);
  if (trains && config.devices.empty()) {
    throw ConfigError(fmt::format(
        "devices: is empty, and {} trains: name a device, such as {{\"kind\": \"cpu\"}}",
        config.name));
  }
  if (!trains && config.devices.size() > 1) {
    throw ConfigError(
        fmt::format("devices: has {}, and {} serves alone: leave them out, or name "
                    "the one that updates its copy of the model",
                    config.devices.size(), config.name));
  }
  // With strategy.scatter the master tells what the images decide; a server has to see them.
  const bool sees_images = run.is_of_images() && !run.strategy.scatter;
  if (config.data_folders().empty() && (run.reads_data(config.name) || sees_images)) {
    throw ConfigError(fmt::format(
        "data: is empty, and {}: name the folder of the run's data",
        run.strategy.scatter ? config.name + " is the master, which sends all sites their batches"
        : trains             ? config.name + " trains"
                 : std::string("the images decide the shape of the net, at a server too")));
  }
}

Found look_at_run(CheckedSite& site) {
  const auto& run = *site.run;
  const auto& config = site.loaded.site;
  in_file(site.run_source, [&] { run.site(config.name); });
  in_file(site.loaded.file, [&] {
    require_links_fit(run, config);
    require_part(run, config);
  });
  if (run.is_open()) {
    return fmt::format("run '{}', one of at most {} sites", run.name, run.most_sites());
  }
  const auto* const part = !run.trains(config.name) ? ", which serves alone"
                           : !run.reads_data(config.name)
                               ? ", to which the master sends its batches"
                           : run.strategy.scatter ? ", the master"
                                                  : "";
  return fmt::format("run '{}', site {} of {}{}", run.name, run.site_id(config.name) + 1,
                     run.sites.size(), part);
}

Found look_at_model(CheckedSite& site) {
  // The shape of a net for images that only the master has is known when the site has joined.
  const bool is_untold = !site.data.is_named() && site.data.facts().is_null();
  if (site.run->is_of_images() && is_untold) return std::nullopt;
  site.layout = family_of(*site.run).layout(site.in_run());
  return fmt::format("{} parameters", num_parameters(*site.layout));
}

Found look_at_profile(CheckedSite& site) {
  const auto& config = site.loaded.site;
  if (config.profile.empty()) return "none is named";
  site.profile = heterogeneity::site_profile_from_json(own_profile(config), config.profile);
  return "measured: " + config.profile;
}

Found look_at_work(CheckedSite& site) {
  const auto work = first_work(site.in_run(), site.profile);
  if (!work.trains()) return "none: it serves alone";
  site.work = work;
  return fmt::format("begins with steps of {} in micro-batches of {}", work.batch,
                     work.micro_batch);
}

Found look_at_memory(CheckedSite& site) {
  if (!site.layout) return std::nullopt;
  const int64_t micro_batch = site.work ? site.work->micro_batch : 0;
  const auto room = require_memory(site.in_run(), *site.layout, micro_batch, free_memory_bytes());
  return CheckResult(room.text, room.is_tight, room.figures);
}

Found look_at_devices(CheckedSite& site) {
  const auto& devices = site.loaded.site.devices;
  if (devices.empty()) return "none: a site that serves alone needs none";
  return in_file(site.loaded.file, [&] {
    assign_cores(devices, site.loaded.site.pin, allowed_cores());
    for (std::size_t i = 0; i < devices.size(); ++i) {
      if (devices[i].kind == DeviceKind::kCpu) continue;
      in_file(fmt::format("devices[{}]", i), [&] { return open_device(devices[i]); });
    }
    return fmt::format("{} in all", devices.size());
  });
}

// As in_file() with the site's config, and for what is only not there yet too.
template <typename Call>
auto in_site_file(const CheckedSite& site, Call&& call) {
  const auto& file = site.loaded.file;
  try {
    return in_file(file, call);
  } catch (const PeerError& error) {
    throw PeerError(error.site(), fmt::format("{}: {}", file, error.what()));
  }
}

constexpr const char* kEndpointField = "coordinator.endpoint";

// Returns those of a coordinator's host; none if its name has none now.
std::vector<wan::SocketAddress> known_addresses(const std::string& endpoint) {
  try {
    return wan::look_up(kEndpointField, wan::parse_endpoint(kEndpointField, endpoint));
  } catch (const wan::UnknownHostError&) {
    return {};
  }
}

// Why a coordinator's name is of no use here; empty if it is of use, or stands for any address. A
// name that nobody knows yet is no fault: the site looks it up until it has joined.
std::string warning_of(const std::string& endpoint) {
  const auto place = wan::parse_endpoint(kEndpointField, endpoint);
  if (wan::is_any_host(place.host)) return "";
  try {
    const auto warning = wan::loopback_warning(place.host, wan::look_up(endpoint, place));
    return warning.empty() ? "" : fmt::format("{}: {}", endpoint, warning);
  } catch (const wan::UnknownHostError& error) {
    return fmt::format("{}. The site looks again while it joins", error.what());
  }
}

CheckResult coordinator_result(const std::string& endpoint, bool is_own, bool is_secure) {
  if (is_own && !is_secure) {
    // Listening is the proof; the coordinator itself listens when the site joins.
    const wan::ControlSocket proof(wan::ControlSocket::Role::kCoordinator, endpoint, {});
  }
  if (const auto warning = warning_of(endpoint); !warning.empty()) return {warning, true};
  if (is_own) {
    return is_secure ? fmt::format("runs behind this site's secure port, {}", endpoint)
                     : fmt::format("can listen at {}", endpoint);
  }
  return fmt::format("{} is {}; whether it answers shows when the site joins", endpoint,
                     wan::text_of(known_addresses(endpoint)));
}

Found look_at_coordinator(CheckedSite& site) {
  const auto& config = site.loaded.site;
  return in_site_file(site, [&] {
    CheckResult all("");
    std::size_t place = 0;
    for (const auto& coordinator : config.coordinators()) {
      const auto found =
          coordinator_result(coordinator.endpoint, config.hosted_coordinator() == place++,
                             !config.network.keys.empty());
      all.text += (all.text.empty() ? "" : "; ") + found.text;
      all.is_warning = all.is_warning || found.is_warning;
    }
    return all;
  });
}

// The ports on which peers will connect. Without a run only the first is known.
void require_ports(const CheckedSite& site, const std::string& ip) {
  wan::MeshOptions mesh;
  mesh.port = static_cast<int>(site.loaded.site.network.port);
  std::vector<int> ports{mesh.port};
  if (const auto& run = site.run) {
    const auto sites = static_cast<int>(run->most_sites());
    mesh.lanes = static_cast<int>(run->sync.lanes.value_or(wan::lanes_for(sites)));
    // Of an open run the own place is known later, and so all ports have to be free.
    const auto own = run->is_open() ? sites : static_cast<int>(run->site_id(site.loaded.site.name));
    ports.clear();
    for (int peer = 0; peer < sites; ++peer) {
      for (int lane = 0; peer != own && lane < mesh.lanes; ++lane) {
        ports.push_back(mesh.port_for(peer, lane));
      }
    }
  }
  for (const int port : ports) {
    wan::listen_at_all("network.port", {wan::SocketAddress(ip, port)}, /*backlog=*/1);
  }
}

// A site that only this machine reaches cannot have sites or coordinators elsewhere.
void require_own_coordinators(const SiteConfig& config, const std::string& ip) {
  if (config.coordinator.host) return;
  for (const auto& [endpoint, site] : config.coordinators()) {
    const auto addresses = known_addresses(endpoint);
    if (addresses.empty() || std::ranges::any_of(addresses, wan::is_own_address)) continue;
    throw ConfigError(fmt::format(
        "network.address: {} is reached from this machine only, and the coordinator is at {}: "
        "set it to an address of this machine that the other sites can reach",
        ip, addresses.front().ip()));
  }
}

// What look_at_network() says of a site without keys.
std::string plain_network(const CheckedSite& site) {
  const auto& network = site.loaded.site.network;
  const auto ip = wan::resolve_address(network.address, network.interface);
  if (wan::SocketAddress(ip, 0).is_loopback()) require_own_coordinators(site.loaded.site, ip);
  require_ports(site, ip);
  return network.port == 0
             ? fmt::format("{} is an address of this machine", ip)
             : fmt::format("{} is an address of this machine, and ports from {} on are free", ip,
                           network.port);
}

std::string secure_network(const SiteConfig& config) {
  std::vector<std::string> texts;
  for (const auto& address : proven_secure_addresses(config)) {
    texts.push_back(address.port() != 0 ? address.text() : "a free one of " + address.ip());
  }
  return fmt::format("the keys are this site's, and the secure port can be {}",
                     fmt::join(texts, " and "));
}

// Of the site's own name; empty without one.
std::string own_name_warning(const NetworkConfig& network) {
  constexpr const char* kField = "network.address";
  if (network.address.empty()) return "";
  const auto host = wan::parse_host(kField, network.address);
  return wan::loopback_warning(host, wan::look_up(kField, {.host = host, .port = 0}));
}

Found look_at_network(CheckedSite& site) {
  const auto& config = site.loaded.site;
  return in_site_file(site, [&]() -> CheckResult {
    auto text = config.network.keys.empty() ? plain_network(site) : secure_network(config);
    const auto warning = own_name_warning(config.network);
    if (!warning.empty()) return {fmt::format("{}; network.address: {}", text, warning), true};
    return text;
  });
}

Found look_at_output(CheckedSite& site) {
  const auto folder = site.loaded.site.folder();
  auto existing = folder;
  std::error_code error;
  while (!fs::exists(existing, error) && existing.has_relative_path()) {
    existing = existing.parent_path();
  }
  auto name = (existing / "farstep-check-XXXXXX").string();
  const int file = ::mkstemp(name.data());
  if (file < 0) {
    throw ConfigError(
        fmt::format("{}: output: cannot write into {} ({}): name another folder, or allow it",
                    site.loaded.file, existing.string(), std::generic_category().message(errno)));
  }
  ::close(file);
  ::unlink(name.c_str());
  return fmt::format("{} can be written", folder.string());
}

Found look_at_data(CheckedSite& site) {
  if (!site.data.is_named()) {
    return "none is named: a site that serves alone needs none, nor one to which a master sends "
           "its "
           "batches";
  }
  const auto found = site.data.text();
  return fmt::format("{}, digest {}", found, checksum_text(site.data.digest()));
}

Found look_at_data_of_run(CheckedSite& site) {
  if (!site.data.is_open() || !site.layout) return std::nullopt;
  const auto found = family_of(*site.run).check_data(site.in_run());
  if (site.work && site.work->batch > found.training_examples) {
    throw ConfigError(fmt::format(
        "{}: plan.base_batch: a step of {} takes {} examples, and the data has {}: take a smaller "
        "batch, or more data",
        site.run_source, site.loaded.site.name, site.work->batch, found.text));
  }
  return found.text;
}

constexpr SiteCheck kChecks[] = {
    {"run", "the run file and the site's config go together", true, look_at_run},
    {"model", "the model's shape, and the folder that it starts from", true, look_at_model},
    {"profile", "the site's profile can be read", false, look_at_profile},
    {"work", "the batch and its micro-batches go together", true, look_at_work},
    {"memory", "model, sync and a micro-batch fit into this machine's memory", true,
     look_at_memory},
    {"devices", "every device of the config exists", false, look_at_devices},
    {"coordinator", "its name is known, or this site can listen there", false, look_at_coordinator},
    {"network", "the address is this machine's, its ports are free, and its keys are whole", false,
     look_at_network},
    {"output", "the folder of records and checkpoints can be written", false, look_at_output},
    {"data", "the dataset folder is whole", false, look_at_data},
    {"data of run", "it fits the model, and its splits and the batch are large enough", true,
     look_at_data_of_run},
};

std::optional<RunConfig> run_of(const LoadedSite& site) {
  if (!site.run) return std::nullopt;
  return run_config_from_json(*site.run, site.run_file);
}

}  // namespace

CheckedSite::CheckedSite(const LoadedSite& site)
    : loaded(site),
      run(run_of(site)),
      run_source(site.run_file),
      data(site.site.data_folders(), run ? std::optional(run->model.family) : std::nullopt) {}

std::optional<uint64_t> CheckedSite::digest() {
  return data.is_named() ? std::optional(data.digest()) : std::nullopt;
}

std::span<const SiteCheck> site_checks() {
  return kChecks;
}

void require_site(CheckedSite& site) {
  for (const auto& check : kChecks) {
    if (check.needs_run && !site.run) continue;
    const auto found = check.look(site);
    if (found && found->is_warning) spdlog::warn("{}", found->text);
  }
}

void require_run_fits(CheckedSite& site, const RunConfig& run, const std::string& run_source) {
  site.run = run;
  site.run_source = run_source;
  for (const auto& check : kChecks) {
    if (check.needs_run) check.look(site);
  }
}

}  // namespace farstep
