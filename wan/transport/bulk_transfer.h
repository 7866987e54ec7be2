// One large message from a site to another, over a TCP connection of its own beside the data path.
//
// The receiver listens, and tells its address and a token by other means; the sender connects. A
// connection that breaks or falls silent is made anew, and the message goes on where it stopped.
// The sender is known by the token alone: its newest connection counts. Whoever else connects holds
// nobody up. What the bytes are is checked by their user.
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

#include "wan/sockets/first_lines.h"
#include "wan/sockets/tcp.h"

namespace farstep::wan {

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
  // can take no connection. Returns false as soon as a stop is requested.
  bool receive(std::span<std::byte> bytes, const std::stop_token& stop);
  // Tells the sender that all has come.
  void finish();

 private:
  // Takes a connection that waits, if there is one.
  void admit();
  // Tells a visitor with the token where to go on: it is the sender now.
  void greet(Socket& visitor, const std::string& line);
  // Reads what has come from the sender. Returns the number of bytes.
  std::size_t take_bytes(std::span<std::byte> bytes);
  std::string own_address() const { return SocketAddress(address_.ip, address_.port).text(); }

  // Returns how long the next byte may take to come.
  double patience_seconds() const { return received_ == 0 ? connect_seconds_ : stall_seconds_; }

  const double connect_seconds_, stall_seconds_;
  Socket listener_;
  BulkAddress address_;
  FirstLines visitors_;
  Socket sender_;
  uint64_t received_ = 0;
};

// Sends the parts one after the other to the receiver at `address`. Throws PeerError, with an empty
// site, after stall_seconds without progress. Returns false as soon as a stop is requested.
bool send_bulk(const BulkAddress& address, std::span<const std::span<const std::byte>> parts,
               const BulkLimits& limits, const std::stop_token& stop);

}  // namespace farstep::wan
