// Moves bytes between the N sites of a run. A site's rank is its site id.
//
// A message is matched by (sender, receiver, tag); sender and receiver must agree on its size, and
// messages with the same three arrive in the order they were sent. Memory handed to send() and
// receive() stays with the transport until wait() returns or the Transfer is destroyed.
//
// A transport works as a whole or not at all: once a peer's connection breaks, a deadline passes,
// a transfer is given up or abort() is called, every present and future call throws PeerError, and
// the transport is to be destroyed. Destroying it tells every peer that this site is gone, so a
// site destroys a healthy one only when all its peers have what they wait for.
//
// Threads: any number of transfers may be under way, started and waited for from any threads; one
// Transfer is waited for by one thread. Transfers must not outlive their transport.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace farstep {

// One message on its way.
class Transfer {
 public:
  // Gives up a transfer whose wait() has not returned: its memory is not touched any more, and the
  // transport is dead, as the stream to the peer would have a hole.
  virtual ~Transfer() = default;
  // Returns once the memory may be used again: received in full, or taken over for sending. Throws
  // PeerError naming the peer if it fails, the transport's PeerError if that is dead.
  virtual void wait() = 0;
};

// What a message is, so that both sides mean the same one. `chunk` numbers the messages of one
// stream; consecutive ones may travel over different connections.
struct Tag {
  uint64_t generation = 0;
  uint64_t round = 0;
  uint32_t fragment = 0;
  uint32_t phase = 0;
  uint32_t chunk = 0;
  auto operator<=>(const Tag&) const = default;
};

// The way to one peer, or to all of them together, since the transport was made; what is counted
// only grows.
struct LinkState {
  // Payload of the messages whose wait() has returned.
  uint64_t sent_bytes = 0, received_bytes = 0;
  // On the sockets, as the kernel counted; retransmissions are not in the first. 0 without sockets.
  uint64_t socket_sent_bytes = 0, socket_received_bytes = 0, retransmitted_bytes = 0;
  // Time in which something was being sent: had not left yet or, where only that is known, not been
  // acknowledged yet. 0 where it takes no time.
  double sending_seconds = 0;
  double rtt_seconds = 0;  // now; to the farthest where there are several peers; 0 if not known
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // The name of the site with this rank.
  virtual const std::string& site(int rank) const = 0;

  // Starts to send `bytes` to `peer`, which must not be this site; an empty message is a no-op.
  // Throws as Transfer::wait() does.
  virtual std::unique_ptr<Transfer> send(int peer, const Tag& tag,
                                         std::span<const std::byte> bytes) = 0;
  // Starts to receive a message of exactly bytes.size() bytes from `peer`; else as send().
  virtual std::unique_ptr<Transfer> receive(int peer, const Tag& tag,
                                            std::span<std::byte> bytes) = 0;

  // From any thread: all present and future calls throw PeerError(site, reason) at once. Only the
  // first failure counts.
  virtual void abort(const std::string& site, const std::string& reason) = 0;

  // The link to `peer`, which must not be this site; also of a transport that is dead.
  virtual LinkState link(int peer) const = 0;
  // All links together: what this site sends. Unless an implementation knows better, it sends to
  // all peers at the same times, and as long as to the one to which it takes longest.
  virtual LinkState uplink() const;
};

}  // namespace farstep
