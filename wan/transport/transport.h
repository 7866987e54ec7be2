// Moves bytes between the N members of a view. A site's rank is its place there.
//
// A message is identified by (sender, receiver, tag). Sender and receiver must agree on its size.
// Messages with equal identity arrive in the order in which they were sent. Memory passed to send()
// and receive() belongs to the transport until wait() returns or the Transfer is destroyed.
//
// A transport fails as a whole. A broken connection, a missed deadline, a transfer that is
// destroyed early, or abort() ends it: every present and future call throws PeerError, and the
// owner must destroy it. Destruction tells every peer that this site has gone. So a site destroys a
// healthy transport only after all peers have received their messages.
//
// Threads: any number of transfers may be under way, started and awaited by any threads. One thread
// waits for one Transfer. Transfers must not outlive their transport.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace farstep::wan {

// A message under way.
class Transfer {
 public:
  // Gives up a transfer whose wait() has not returned: its memory is not used any more. The
  // transport is dead then, because the stream to the peer has a gap.
  virtual ~Transfer() = default;
  // Waits until the memory may be used again: it was received in full, or copied for sending.
  // Throws PeerError naming the peer if the transfer fails, or the transport's PeerError if that is
  // dead.
  virtual void wait() = 0;
};

// Identifies a message at both sides. `chunk` numbers the messages of one stream; consecutive
// chunks may use different connections.
struct Tag {
  uint64_t generation = 0;
  uint64_t round = 0;
  uint32_t fragment = 0;
  uint32_t phase = 0;
  uint32_t chunk = 0;
  auto operator<=>(const Tag&) const = default;
};

// Totals of the link to one peer, or of the links to all, since the transport was constructed.
struct LinkState {
  // Payload of the messages whose wait() has returned.
  uint64_t sent_bytes = 0, received_bytes = 0;
  // As the kernel counts them on the sockets; sent bytes exclude retransmissions. 0 without
  // sockets.
  uint64_t socket_sent_bytes = 0, socket_received_bytes = 0, retransmitted_bytes = 0;
  // Time during which bytes were being sent: until they have left; over TCP, until they are
  // acknowledged. 0 if sending takes no time.
  double sending_seconds = 0;
  // The longest if there are several peers; 0 if unknown. The least one excludes queues.
  double rtt_seconds = 0;        // current
  double least_rtt_seconds = 0;  // since the link opened
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Returns the name of the site with this rank.
  virtual const std::string& site(int rank) const = 0;

  // Starts to send `bytes` to `peer`, which must not be this site. An empty message does nothing.
  // Throws as Transfer::wait() does.
  virtual std::unique_ptr<Transfer> send(int peer, const Tag& tag,
                                         std::span<const std::byte> bytes) = 0;
  // Starts to receive a message of exactly bytes.size() bytes from `peer`. Otherwise as send().
  virtual std::unique_ptr<Transfer> receive(int peer, const Tag& tag,
                                            std::span<std::byte> bytes) = 0;

  // Makes all present and future calls throw PeerError(site, reason) at once; any thread may call
  // it. Only the first failure counts.
  virtual void abort(const std::string& site, const std::string& reason) = 0;

  // Returns the totals of the link to `peer`, which must not be this site. Works on a dead
  // transport too.
  virtual LinkState link(int peer) const = 0;
  // Returns the totals of all links together. The default assumes that the site sends to all peers
  // at the same time, so that the longest sending time is that of all.
  virtual LinkState uplink() const;
};

}  // namespace farstep::wan
