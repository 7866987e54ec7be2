// What the peers of a site may reach over its tunnels: sockets that listen on this machine, by
// name. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "wan/sockets/tcp.h"

namespace farstep::wan {

struct Service {
  SocketAddress address;
  std::string source_ip;  // where the connections of the peer come from
};

class Services {
 public:
  // Lets `peer` reach `name` as long as the result exists. A newer offer takes the place of an
  // older one.
  std::shared_ptr<const void> offer(const std::string& peer, const std::string& name,
                                    Service service);
  // Lets every peer reach `name`. Each one's connections come from an address of its own.
  std::shared_ptr<const void> offer_to_all(const std::string& name, const SocketAddress& address);
  // Returns what `peer` reaches as `name`; nullopt if that is nothing.
  std::optional<Service> find(const std::string& peer, const std::string& name);
  // Returns whose connections to a service for all come from `ip`; nullopt if nobody's do.
  std::optional<std::string> visitor(const std::string& ip) const;

 private:
  mutable std::mutex mutex_;
  // By peer, empty for all, and name. Guarded by mutex_, as visitors_.
  std::map<std::pair<std::string, std::string>, std::weak_ptr<const Service>> offers_;
  std::map<std::string, std::string> visitors_;  // peers by address
};

}  // namespace farstep::wan
