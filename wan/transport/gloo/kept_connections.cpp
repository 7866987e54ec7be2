// A device of Gloo's is a thread, which wakes up a hundred times a second even if nothing happens.
// So all connections share one. It only copies between sockets and memory, which is faster than the
// lines between sites. The Gloo of Debian 13 has one socket that listens in each device, where that
// of Debian 12 has one in each connection. A port of its own then needs a device of its own.
#include "wan/transport/gloo/kept_connections.h"

#include <gloo/transport/tcp/device.h>
#include <spdlog/spdlog.h>

#include <cstring>
#include <utility>
#include <vector>

#include "wan/transport/gloo/gloo_connection.h"

namespace farstep::wan {

namespace {

#if __has_include(<gloo/transport/tcp/listener.h>)
constexpr bool kDeviceListens = true;
#else
constexpr bool kDeviceListens = false;
#endif

// Gives Gloo the address itself, so that it resolves no host name.
gloo::transport::tcp::attr listening_attributes(const SocketAddress& address) {
  gloo::transport::tcp::attr attributes;
  attributes.ai_family = address.family();
  attributes.ai_socktype = SOCK_STREAM;
  attributes.ai_protocol = 0;
  attributes.ai_addr = {};
  std::memcpy(&attributes.ai_addr, address.get(), address.size());
  attributes.ai_addrlen = static_cast<int>(address.size());
  return attributes;
}

// The end of a connection may show only now, when its watch is made.
bool can_begin(GlooConnection& connection, const MeshOptions& mesh) {
  const bool fits = std::ssize(connection.lanes) == mesh.lanes &&
                    // A relay's addresses change with the ranks, and nobody else sees them.
                    (mesh.relay != nullptr || connection.address() == mesh.address);
  if (!fits || !connection.is_clean()) return false;
  try {
    connection.begin(mesh.generation);
    return true;
  } catch (const std::exception& error) {
    spdlog::debug("a connection is not kept: {}", error.what());
    return false;
  }
}

}  // namespace

KeptConnections::KeptConnections() = default;

KeptConnections::~KeptConnections() {
  close();
}

Offers KeptConnections::offer(const MeshOptions& mesh) {
  Offers offers(mesh.sites.size(), 0);
  std::map<std::string, GlooConnectionPtr> fitting;
  for (std::size_t rank = 0; rank < mesh.sites.size(); ++rank) {
    const auto found = connections_.find(mesh.sites[rank]);
    if (found == connections_.end() || !can_begin(*found->second, mesh)) continue;
    offers[rank] = static_cast<int64_t>(found->second->generation());
    fitting.insert(connections_.extract(found));
  }
  close();
  connections_ = std::move(fitting);
  return offers;
}

GlooConnectionPtr KeptConnections::take(const std::string& site) {
  auto found = connections_.extract(site);
  return found.empty() ? nullptr : std::move(found.mapped());
}

void KeptConnections::leave(const std::string& site, GlooConnectionPtr connection) {
  connections_[site] = std::move(connection);
}

void KeptConnections::close() {
  std::vector<GlooConnectionPtr> closing;
  for (auto& [site, connection] : connections_) closing.push_back(std::move(connection));
  connections_.clear();
  close_all(std::move(closing));
}

std::shared_ptr<gloo::transport::Device> KeptConnections::device(const std::string& ip) {
  if (kDeviceListens || !device_ || device_ip_ != ip) {
    device_ =
        std::make_shared<gloo::transport::tcp::Device>(listening_attributes(SocketAddress(ip, 0)));
    device_ip_ = ip;
  }
  return device_;
}

}  // namespace farstep::wan
