// The connections of this machine that a tunnel carries: each one is a stream of the TunnelEnd.
//
// Bytes of the peer that a connection does not take yet wait here, at most the stream's window. One
// thread at a time uses it.
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "wan/sockets/tcp.h"
#include "wan/tunnel/services.h"
#include "wan/tunnel/tunnel_end.h"

namespace farstep::wan {

class LocalStreams : public StreamEvents {
 public:
  // `services` must outlive it.
  LocalStreams(std::string peer, bool has_odd_streams, Services& services,
               TunnelLimits limits = {});

  TunnelEnd& end() { return end_; }
  // Carries `local` to the peer's service `name`. Closes it if there are too many streams.
  void add(Socket local, const std::string& name);
  // Appends an entry for each connection. Those are not read unless `may_read`.
  void append_entries(std::vector<pollfd>& entries, bool may_read);
  // Moves bytes by the entries that append_entries() made, after poll() has filled them. No call
  // of another function may come between, but those of end().
  void handle(std::span<const pollfd> entries);
  // Whether the tunnel may end: no connection has more bytes for the peer, as far as this side
  // knows, and the peer has acknowledged all.
  bool is_drained() const;

 private:
  struct Local {
    Socket socket;
    std::vector<std::byte> waiting = {};  // bytes of the peer, from `begin` on
    std::size_t begin = 0;
    bool has_read_all = false;  // the connection's own end
    bool is_peer_done = false;  // the peer's
  };

  void on_open(uint32_t stream, const std::string& name) override;
  void on_data(uint32_t stream, std::span<const std::byte> bytes) override;
  void on_finish(uint32_t stream) override;
  void on_reset(uint32_t stream) override;

  void read(uint32_t stream, Local& local);
  void write_waiting(uint32_t stream, Local& local);
  // Returns how many bytes the connection took.
  std::size_t write(uint32_t stream, Local& local, std::span<const std::byte> bytes);
  void drop(uint32_t stream);
  void drop_if_over(uint32_t stream);

  const std::string peer_;
  Services& services_;
  TunnelEnd end_;
  std::map<uint32_t, Local> locals_;
  std::vector<uint32_t> polled_;  // the stream of each entry
  std::vector<std::byte> scratch_;
};

}  // namespace farstep::wan
