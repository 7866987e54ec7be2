// One lane between two sites: a thread that keeps a TLS connection to the peer, and carries
// connections of this machine over it.
//
// A broken connection is made anew by an end that can dial, and all streams go on where they
// stopped, however long it takes. They end at once if the peer's process has ended: it says so, its
// port refuses connections, or it comes back as another end.
//
// Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "wan/secure/secure_channel.h"
#include "wan/sockets/host_addresses.h"
#include "wan/sockets/process_sockets.h"
#include "wan/sockets/waker.h"
#include "wan/tunnel/local_streams.h"
#include "wan/tunnel/services.h"

namespace farstep::wan {

class Tunnel : public Line {
 public:
  // `credentials` and `services` must outlive it.
  Tunnel(std::string peer, int lane, const Credentials& credentials, Services& services);
  // Flushes the data of connections that have ended, for at most two seconds.
  ~Tunnel() override;

  // Tells where the peer listens. An end that `dials_first` connects at once, the other one half a
  // second later if there is no connection.
  void set_peer_place(const HostPort& place, bool dials_first);
  // Takes a channel that the peer made for this lane.
  void take(SecureChannel channel);
  // Listens at `ip` for connections to the peer's service `name`, as long as the result exists.
  // Throws TcpError.
  std::shared_ptr<const Socket> listen_for(const std::string& name, const std::string& ip);
  // Waits until a connection exists. Returns false at the deadline.
  bool wait_until_connected(Deadline deadline);
  // Whether the peer's machine has closed the newest connection, as it does when a process ends. A
  // line that is silent has not.
  bool is_closed_by_peer() const;
  // Returns why the last attempt to connect failed; empty if none did since the last connection.
  std::string failure() const;
  // Asks the thread to end as the destructor does, but does not wait for it.
  void request_stop();

  // The figures of all connections of the lane, one after the other.
  SocketFacts facts() override;
  void limit_pace(double bits_per_second) override;
  void pace_with(const std::string& congestion_control) override;
  void hurry(bool) override {}  // a connection that carries nothing is made anew

 private:
  using Time = std::chrono::steady_clock::time_point;

  // Where connections of this machine come in.
  struct Door {
    Socket listener;
    std::string service;
  };

  void run();
  void take_requests();
  bool is_over();
  void dial();
  // Returns whether a connection to the address was made.
  bool dial(HostAddresses& addresses, const SocketAddress& address);
  void begin(SecureChannel channel, bool is_dialed);
  void lose(const std::string& reason, bool is_closed_by_peer);
  void end_all_streams();
  void exchange();
  void receive();
  bool send();
  void admit(const Door& door);
  void check_revocation();
  void check_silence();

  const std::string peer_;
  const int lane_;
  const Credentials& credentials_;
  const bool is_first_;  // by name, of the two sites
  const Waker waker_;

  // Used by the thread only.
  LocalStreams streams_;
  std::optional<SecureChannel> channel_;
  bool is_dialed_ = false;  // channel_ is
  bool has_been_connected_ = false;
  std::optional<SocketAddress> reached_;  // the address of the newest connection that was dialed
  Time heard_{}, sent_{}, next_dial_{}, next_admit_{}, checked_{};
  Time lost_ = std::chrono::steady_clock::now();
  double dial_pause_seconds_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::optional<SecureChannel> offered_;
  std::optional<HostPort> place_;
  std::shared_ptr<HostAddresses> addresses_;  // of place_
  bool dials_first_ = false;
  std::vector<std::weak_ptr<const Door>> doors_;
  bool is_stopping_ = false;
  Time drain_until_{};
  bool is_connected_ = false, is_closed_by_peer_ = false;
  std::string failure_;
  std::optional<SocketCounter> counter_;  // of channel_
  SocketFacts before_;                    // of the connections before
  uint64_t num_connections_ = 0;
  std::optional<double> pace_;
  std::string control_;

  std::thread thread_;  // the last member: it uses all others
};

}  // namespace farstep::wan
