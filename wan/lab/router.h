// The internet of a lab: takes packets from sites, and gives them to others when they are due.
//
// A packet passes the uplink of the site that sent it and the downlink of the one it is for, each a
// link model; nothing else limits it. The router keeps no time and opens nothing: its caller says
// what comes from where when, and carries away what is due. Times never go back. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "wan/lab/lab_counters.h"
#include "wan/lab/lab_spec.h"
#include "wan/lab/packet_queue.h"
#include "wan/link/link_model.h"

namespace farstep {

class Router {
 public:
  // Receives a packet at the end of its way; `site` counts from 0.
  using Sink = std::function<void(std::size_t site, std::span<const std::byte> packet)>;

  // Throws ConfigError if the subnet is not one.
  explicit Router(const LabSpec& spec);

  std::size_t num_sites() const { return sites_.size(); }
  // The address of site `site` (from 0), in host order.
  uint32_t address(std::size_t site) const { return subnet_ + static_cast<uint32_t>(site) + 1; }

  // Where the next packet is to be written for accept(): room for the largest one.
  std::span<std::byte> room() const { return blank_->content; }
  // `site` has sent the first `bytes` of room(). What is no IPv4 packet, or for no site, is counted
  // and dropped.
  void accept(std::size_t site, std::size_t bytes, double now_seconds);

  // Gives all packets that are due at `now_seconds` to `sink`, in the order of their times.
  void deliver(double now_seconds, const Sink& sink);
  // When deliver() has something to do next; infinity if nothing is under way.
  double next_due_seconds() const;

  // The access link of `site`, both its directions.
  const LinkShape& shape(std::size_t site) const { return sites_[site].up.model.shape(); }
  void set_shape(std::size_t site, const LinkShape& shape);

  LabCounters counters() const;

 private:
  struct Link {
    LinkModel model;
    std::size_t site;
    bool is_up;
    PacketQueue queue;  // what is on it, in order of due_seconds
  };
  struct Site {
    Link up, down;
    PacketCount malformed, no_such_site;
  };

  // Drops the packet, or puts it on the link.
  void enter(Link& link, Packet* packet, double now_seconds);
  // The link with the packet that is due first; null if nothing is under way.
  const Link* next_link() const;

  const uint32_t subnet_;
  PacketPool pool_;
  std::vector<Site> sites_;
  Packet* blank_;
};

}  // namespace farstep
