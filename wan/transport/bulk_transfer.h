// One large message from a site to another, over a TCP connection of its own beside the data path.
//
// The receiver listens, and tells its address and a token by other means; the sender connects. A
// connection that breaks is made anew, and the message goes on where it stopped. The sender is
// known by the token alone. What the bytes are is checked by their user.
//
// On the connection: the sender's line "farstep-bulk TOKEN", the receiver's line with the number of
// bytes that it has, the rest of the bytes, the receiver's line "done".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "wan/sockets/tcp.h"

namespace farstep {

// Where a receiver waits.
struct BulkAddress {
  std::string ip;
  int port = 0;
  std::string token;
};

// How long a transfer may stand still, and how fast it may be.
struct BulkLimits {
  double stall_seconds = 60;  // without a byte for so long it fails
  std::optional<double> bits_per_second = {};
};

// Not thread-safe.
class BulkReceiver {
 public:
  // Listens at `ip`; port 0 takes a free one. Throws ConfigError, or PeerError if it may succeed
  // later (throw_cannot_listen()).
  BulkReceiver(const std::string& ip, int port, double connect_seconds, double stall_seconds);

  const BulkAddress& address() const { return address_; }

  // Fills `bytes` with the message's next bytes. Throws PeerError, with an empty site, after
  // connect_seconds without the first one, or stall_seconds without another, and if this process
  // can take no connection. Returns false if a stop was requested.
  bool receive(std::span<std::byte> bytes, const std::stop_token& stop);
  // Tells the sender that all has come.
  void finish();

 private:
  // Waits for the sender's connection, and tells it where to go on. Drops whoever else connects.
  bool accept_sender(Deadline deadline, int stop_fd);

  // Returns how long the next byte may take to come.
  double patience_seconds() const { return received_ == 0 ? connect_seconds_ : stall_seconds_; }

  const double connect_seconds_, stall_seconds_;
  Socket listener_;
  BulkAddress address_;
  Socket sender_;
  uint64_t received_ = 0;
};

// Sends the parts one after the other to the receiver at `address`. Throws PeerError, with an empty
// site, after stall_seconds without progress. Returns false if a stop was requested.
bool send_bulk(const BulkAddress& address, std::span<const std::span<const std::byte>> parts,
               const BulkLimits& limits, const std::stop_token& stop);

}  // namespace farstep
