// The internet of a lab: accepts packets from sites, and delivers them to other sites when they are
// due.
//
// A packet passes the uplink of its sender and the downlink of its destination; each is a link
// model. It has no other limit. The router has no clock and does no I/O: its caller passes packets
// and times, and takes the packets that are due. Times must not decrease. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "wan/lab/lab_counters.h"
#include "wan/lab/lab_spec.h"
#include "wan/lab/packet_link.h"
#include "wan/lab/packet_queue.h"

namespace farstep::wan {

class Router {
 public:
  // Receives a packet at the end of its way; `site` counts from 0.
  using Sink = std::function<void(std::size_t site, std::span<const std::byte> packet)>;

  // Throws ConfigError if the subnet is not one.
  explicit Router(const LabSpec& spec);

  std::size_t num_sites() const { return sites_.size(); }
  // The address of site `site` (from 0), in host order.
  uint32_t address(std::size_t site) const { return subnet_ + static_cast<uint32_t>(site) + 1; }

  // The memory for the next packet of accept(), large enough for the largest packet.
  std::span<std::byte> room() const { return blank_->content; }
  // Accepts the first `bytes` of room() as a packet from `site`. A packet that is not IPv4, or for
  // no site, is counted and dropped.
  void accept(std::size_t site, std::size_t bytes, double now_seconds);

  // Passes all packets that are due at `now_seconds` to `sink`, in the order of their times.
  void deliver(double now_seconds, const Sink& sink);
  // Returns when the next packet is due; infinity if none is under way.
  double next_due_seconds() const;

  // The access link of `site`, in both directions.
  const LinkShape& shape(std::size_t site) const { return sites_[site].up.access.shape(); }
  void set_shape(std::size_t site, const LinkShape& shape);

  LabCounters counters() const;

 private:
  struct Link {
    PacketLink access;
    std::size_t site;
    bool is_up;
    PacketQueue queue;  // its packets, in order of due_seconds
  };
  struct Site {
    Link up, down;
    PacketCount malformed, no_such_site;
  };

  // Drops the packet or adds it to the link.
  void enter(Link& link, Packet* packet, double now_seconds);
  // Returns the link whose packet is due first; null if none is under way.
  const Link* next_link() const;

  const uint32_t subnet_;
  PacketPool pool_;
  std::vector<Site> sites_;
  Packet* blank_;
};

}  // namespace farstep::wan
