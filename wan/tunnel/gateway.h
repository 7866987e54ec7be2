// The one port of a site: everything between it and its peers crosses this port, in tunnels.
//
// It lets in only sites with a certificate of the run, and connects only to such. Between two sites
// there is a tunnel for each lane, as soon as one of the two uses it. Peers reach what this site
// offers, and nothing else of this machine. The connections that a Gateway carries are plain TCP
// within the machine, so other users of the machine are trusted.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "trainer/base/clock.h"
#include "wan/secure/secure_listener.h"
#include "wan/sockets/stranger_log.h"
#include "wan/transport/relay.h"
#include "wan/tunnel/services.h"
#include "wan/tunnel/tunnel.h"

namespace farstep::wan {

class Gateway : public Relay {
 public:
  // Listens at `addresses`, as listen_at_all() does, with the keys of `credentials`. `clock` must
  // outlive it. Throws ConfigError, or PeerError if it may succeed later (throw_cannot_listen()).
  Gateway(const std::vector<SocketAddress>& addresses, Credentials credentials, const Clock& clock);
  // Flushes the data of connections that have ended, for at most two seconds.
  ~Gateway() override;

  // Returns the site's name, as its certificate says.
  const std::string& site() const { return credentials_.identity().site; }
  // Returns the port.
  int port() const { return port_; }

  // Tells where a peer listens. `dials_first`: that peer cannot connect to this site, or waits for
  // it to do so.
  void know(const std::string& peer, const HostPort& place, bool dials_first);
  // Tells where the peer listens for one lane, which this site always dials.
  void know_for_lane(const std::string& peer, int lane, const HostPort& place);
  // Waits until the lane has a connection. Returns why there is none at the deadline; empty if
  // there is one.
  std::string connect(const std::string& peer, int lane, Deadline deadline);

  // Tunnel::is_closed_by_peer() of the lane; false if there is none.
  bool is_closed_by_peer(const std::string& peer, int lane) const;

  // Lets every peer reach the socket that listens at `address`, as long as the result exists.
  // Connections come from the address that visitor() knows.
  std::shared_ptr<const void> offer_to_all(const std::string& service,
                                           const SocketAddress& address);
  // Returns whose connections to such a service come from `ip`; nullopt if nobody's do.
  std::optional<std::string> visitor(const std::string& ip) const;

  std::shared_ptr<const void> offer(const std::string& peer, const std::string& service,
                                    const SocketAddress& address,
                                    const std::string& source_ip) override;
  Way way_to(const std::string& peer, int lane, const std::string& service,
             const std::string& ip) override;
  std::shared_ptr<Line> line(const std::string& peer, int lane) override;

 private:
  std::shared_ptr<Tunnel> tunnel(const std::string& peer, int lane);
  void listen();
  void welcome(SecureChannel channel);

  const Credentials credentials_;
  Services services_;
  StrangerLog strangers_;  // used by the thread only, as listener_
  SecureListener listener_;
  const int port_;

  struct Known {
    HostPort place;
    bool dials_first;
  };
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::map<std::string, Known> known_;
  std::map<std::pair<std::string, int>, std::shared_ptr<Tunnel>> tunnels_;

  std::atomic<bool> is_stopping_ = false;
  std::thread thread_;  // the last member: it uses all others
};

}  // namespace farstep::wan
