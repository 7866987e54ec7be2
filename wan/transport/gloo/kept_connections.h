// What GlooTransports of one site, each for a mesh, leave to the next one: connections with peers
// that stay, and the thread of Gloo.
//
// Not thread-safe. Must outlive the transports that use it.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "wan/transport/mesh.h"
#include "wan/transport/network_notice.h"

namespace gloo::transport {
class Device;
}

namespace farstep::wan {

class GlooConnection;

class KeptConnections {
 public:
  KeptConnections();
  // Closes what it has.
  ~KeptConnections();
  KeptConnections(const KeptConnections&) = delete;
  KeptConnections& operator=(const KeptConnections&) = delete;

  // Returns the connections that fit a mesh, which is made next: for check_network(). Closes all
  // others.
  Offers offer(const MeshOptions& mesh);

  // For the transports: take out, or leave, the connection with a site. take() returns null if
  // there is none.
  std::unique_ptr<GlooConnection> take(const std::string& site);
  void leave(const std::string& site, std::unique_ptr<GlooConnection> connection);
  // Closes what was not taken.
  void close();
  // Returns what serves the connections of meshes in which this site listens at `ip`: with a Gloo
  // whose devices listen, a new one for each. Throws what Gloo throws.
  std::shared_ptr<gloo::transport::Device> device(const std::string& ip);

 private:
  std::map<std::string, std::unique_ptr<GlooConnection>> connections_;  // by the peer's name
  std::string device_ip_;                                               // of device_
  std::shared_ptr<gloo::transport::Device> device_;
};

}  // namespace farstep::wan
