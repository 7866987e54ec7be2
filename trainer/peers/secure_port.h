// The secure port of a site or of a coordinator alone, and the way to the coordinator over it.
// Thread-safe.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/clock.h"
#include "trainer/settings/site_config.h"
#include "wan/membership/coordinator.h"
#include "wan/sockets/tcp.h"
#include "wan/transport/relay.h"
#include "wan/tunnel/gateway.h"

namespace farstep {

class SecurePort {
 public:
  // Opens the port that the site's config asks for; null without network.keys, with a warning
  // unless all stays on this machine. `clock` must outlive it. Throws ConfigError, DataError and
  // PeerError.
  static std::unique_ptr<SecurePort> open(const SiteConfig& site, const Clock& clock);

  // Listens at `addresses`, as listen_at_all() does, with the keys of a folder. Peers connect to
  // `reached_ip` and the same port; nullopt: they cannot.
  SecurePort(const std::filesystem::path& keys, const std::vector<wan::SocketAddress>& addresses,
             const std::optional<std::string>& reached_ip, const Clock& clock);

  wan::Gateway& gateway() { return gateway_; }
  // Where peers can connect to this site; nullopt: nowhere.
  const std::optional<wan::SocketAddress>& reached_at() const { return reached_at_; }

  // Lets the sites of the run reach the coordinator that listens at `endpoint` on this machine,
  // which has its IP address.
  void offer_coordinator(const std::string& endpoint);
  // Tells a coordinator of the sites that visit it. `own`: the site in this process, which connects
  // from 127.0.0.1; empty if there is none.
  wan::CoordinatorVisitors visitors(const std::string& own);
  // Returns why a coordinator cannot be reached; empty if it can, or that is not known.
  std::string failure(const std::string& site);
  // Returns the endpoint on this machine that leads to a coordinator elsewhere.
  std::string way_to_coordinator(const CoordinatorPlace& coordinator);

 private:
  wan::Gateway gateway_;
  std::optional<wan::SocketAddress> reached_at_;
  std::shared_ptr<const void> offer_;  // of the coordinator, where it is hosted
  std::vector<wan::Way> ways_;         // to coordinators elsewhere
};

// Where a coordinator behind a secure port listens.
inline constexpr const char* kBehindSecurePort = "tcp://127.0.0.1:0";

// Returns where a site with network.keys would listen, after a proof that it can: its keys are
// whole and its own, and the port is free. Throws ConfigError, DataError and PeerError.
std::vector<wan::SocketAddress> proven_secure_addresses(const SiteConfig& site);

}  // namespace farstep
