// All that one site can find wrong alone, before it joins: once it has registered, every mistake
// costs all sites their waiting. The order is that of need, as later checks use what earlier ones
// have found.
#include "trainer/run/site_checks.h"

#include <fmt/format.h>
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
#include "wan/sockets/local_address.h"
#include "wan/sockets/tcp.h"
#include "wan/transport/mesh.h"

namespace farstep {

namespace {

namespace fs = std::filesystem;

using Found = std::optional<std::string>;

constexpr double kGigabyte = 1e9;

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

// The least that the site can do with: activations, checkpoints and buffers come on top.
Found look_at_memory(CheckedSite& site) {
  const auto free_bytes = free_memory_bytes();
  if (!site.layout || !free_bytes) return std::nullopt;
  const int64_t vector_bytes = 4 * num_parameters(*site.layout);
  int64_t vectors = 2;  // theta_global and the outer momentum
  if (site.loaded.site.devices.empty()) vectors += 4;
  for (const auto& device : site.loaded.site.devices) {
    const int64_t own =
        &device == &site.loaded.site.devices.front() ? 4 : 2;  // and AdamW's moments
    if (device.kind == DeviceKind::kCpu) vectors += own;
  }
  const auto least = static_cast<double>(vectors * vector_bytes) / kGigabyte;
  const auto available = static_cast<double>(*free_bytes) / kGigabyte;
  if (least > available) {
    throw ConfigError(fmt::format(
        "{}: model: needs {:.1f} GB of this machine's memory at least, of which {:.1f} GB are "
        "free: end other programs, or train a smaller model",
        site.run_source, least, available));
  }
  return fmt::format("{:.1f} GB at least, {:.1f} GB are free", least, available);
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

Found look_at_profile(CheckedSite& site) {
  return own_profile(site.loaded.site).is_null() ? "none is named"
                                                 : "measured: " + site.loaded.site.profile;
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

// The IP address of the coordinator's host.
std::string ip_of_coordinator(const std::string& endpoint) {
  constexpr const char* kField = "coordinator.endpoint";
  return wan::ip_of_host(kField, wan::parse_endpoint(kField, endpoint).host);
}

std::string found_of_coordinator(const std::string& endpoint, bool is_own, bool is_secure) {
  if (is_own && is_secure) {
    return fmt::format("runs behind this site's secure port, {}", endpoint);
  }
  if (is_own) {
    // Listening is the proof; the coordinator itself listens when the site joins.
    const wan::ControlSocket proof(wan::ControlSocket::Role::kCoordinator, endpoint, {});
    return fmt::format("can listen at {}", endpoint);
  }
  return fmt::format("{} is {}; whether it answers shows when the site joins", endpoint,
                     ip_of_coordinator(endpoint));
}

Found look_at_coordinator(CheckedSite& site) {
  const auto& config = site.loaded.site;
  return in_site_file(site, [&] {
    std::vector<std::string> found;
    for (const auto& coordinator : config.coordinators()) {
      found.push_back(found_of_coordinator(coordinator.endpoint,
                                           config.hosted_coordinator() == found.size(),
                                           !config.network.keys.empty()));
    }
    return fmt::format("{}", fmt::join(found, "; "));
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
    const wan::SocketAddress address(ip, port);
    try {
      wan::listen_tcp(address);
    } catch (const wan::TcpError& error) {
      wan::throw_cannot_listen(
          error.error(), fmt::format("network.port: cannot listen on {} ({}): choose another port, "
                                     "or end the process that listens there",
                                     address.text(), error.what()));
    }
  }
}

// A site that only this machine reaches cannot have sites or coordinators elsewhere.
void require_own_coordinators(const SiteConfig& config, const std::string& ip) {
  if (config.coordinator.host) return;
  for (const auto& [endpoint, site] : config.coordinators()) {
    const auto coordinator = ip_of_coordinator(endpoint);
    if (wan::is_own_address(coordinator)) continue;
    throw ConfigError(fmt::format(
        "network.address: {} is reached from this machine only, and the coordinator is at {}: "
        "set it to an address of this machine that the other sites can reach",
        ip, coordinator));
  }
}

Found look_at_network(CheckedSite& site) {
  const auto& config = site.loaded.site;
  return in_site_file(site, [&] {
    if (!config.network.keys.empty()) {
      const auto address = proven_secure_address(config);
      return fmt::format("the keys are this site's, and the secure port can be {}",
                         address.port() != 0 ? address.text() : "a free one of " + address.ip());
    }
    const auto ip = wan::resolve_address(config.network.address, config.network.interface);
    if (wan::SocketAddress(ip, 0).is_loopback()) require_own_coordinators(config, ip);
    require_ports(site, ip);
    return config.network.port == 0
               ? fmt::format("{} is an address of this machine", ip)
               : fmt::format("{} is an address of this machine, and ports from {} on are free", ip,
                             config.network.port);
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
  return family_of(*site.run).check_data(site.in_run());
}

constexpr SiteCheck kChecks[] = {
    {"run", "the run file and the site's config go together", true, look_at_run},
    {"model", "the model's shape, and the folder that it starts from", true, look_at_model},
    {"memory", "the weights fit into this machine's memory", true, look_at_memory},
    {"devices", "every device of the config exists", false, look_at_devices},
    {"profile", "the site's profile can be read", false, look_at_profile},
    {"coordinator", "its name is known, or this site can listen there", false, look_at_coordinator},
    {"network", "the address is this machine's, its ports are free, and its keys are whole", false,
     look_at_network},
    {"output", "the folder of records and checkpoints can be written", false, look_at_output},
    {"data", "the dataset folder is whole", false, look_at_data},
    {"data of run", "it fits the model, and its splits are large enough", true,
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
    if (!check.needs_run || site.run) check.look(site);
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
