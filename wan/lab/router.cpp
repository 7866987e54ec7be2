// The internet of the lab: each site has a link up and a link down, and nothing in between is slow.
// So a packet waits at two places, the sender's uplink and the receiver's downlink, as between two
// homes.
#include "wan/lab/router.h"

#include <limits>

#include "trainer/base/mix.h"
#include "wan/lab/ipv4.h"

namespace farstep::wan {

Router::Router(const LabSpec& spec)
    : subnet_(parse_subnet(spec.subnet)),
      pool_(static_cast<std::size_t>(spec.mtu_bytes)),
      blank_(pool_.take()) {
  const auto link = [&spec](std::size_t site, bool is_up) {
    // Every link loses packets of its own choice.
    const uint64_t number = 2 * site + (is_up ? 0 : 1);
    const uint64_t seed = mix(static_cast<uint64_t>(spec.seed)) + number;
    return Link{PacketLink(spec.sites[site], seed), site, is_up, {}};
  };
  for (std::size_t i = 0; i < spec.sites.size(); ++i) {
    sites_.push_back(
        {.up = link(i, true), .down = link(i, false), .malformed = {}, .no_such_site = {}});
  }
}

void Router::accept(std::size_t site, std::size_t bytes, double now_seconds) {
  // A packet is read straight into the pool's memory; a packet that is dropped leaves it for the
  // next one.
  Packet* packet = blank_;
  auto& from = sites_[site];
  const auto content = packet->content.first(bytes);
  const auto destination = ipv4_destination(content);
  if (!destination) {
    from.malformed.add(static_cast<int64_t>(bytes));
    return;
  }
  // A number below 0 becomes a large one, and is no site.
  const uint32_t number = *destination - subnet_ - 1;
  if (number >= sites_.size()) {
    from.no_such_site.add(static_cast<int64_t>(bytes));
    return;
  }
  packet->destination = number;
  packet->content = content;
  blank_ = pool_.take();
  enter(from.up, packet, now_seconds);
}

void Router::enter(Link& link, Packet* packet, double now_seconds) {
  const auto transit = link.access.enter(now_seconds, static_cast<int64_t>(packet->content.size()));
  // A lost packet has used the link's time, and goes no further.
  if (transit.fate != Fate::kArrives) {
    pool_.give_back(packet);
    return;
  }
  packet->due_seconds = transit.arrive_seconds;
  link.queue.push(packet);
}

// Checks every link: there are few, and each queue is in order.
const Router::Link* Router::next_link() const {
  const Link* next = nullptr;
  for (const auto& site : sites_) {
    for (const Link* link : {&site.up, &site.down}) {
      if (link->queue.is_empty()) continue;
      if (next == nullptr || link->queue.front().due_seconds < next->queue.front().due_seconds) {
        next = link;
      }
    }
  }
  return next;
}

void Router::deliver(double now_seconds, const Sink& sink) {
  while (const Link* next = next_link()) {
    if (next->queue.front().due_seconds > now_seconds) return;
    auto& from = sites_[next->site];
    Packet* packet = (next->is_up ? from.up : from.down).queue.pop();
    // Up and down are two links, so a packet queues twice: at its site and at the destination's.
    if (next->is_up) {
      // Enters the next link at its due time, so a late caller does not delay the packet.
      enter(sites_[packet->destination].down, packet, packet->due_seconds);
    } else {
      sink(next->site, packet->content);
      pool_.give_back(packet);
    }
  }
}

double Router::next_due_seconds() const {
  const Link* next = next_link();
  return next == nullptr ? std::numeric_limits<double>::infinity()
                         : next->queue.front().due_seconds;
}

void Router::set_shape(std::size_t site, const LinkShape& shape) {
  sites_[site].up.access.set_shape(shape);
  sites_[site].down.access.set_shape(shape);
}

LabCounters Router::counters() const {
  LabCounters counters;
  for (std::size_t i = 0; i < sites_.size(); ++i) {
    const auto& site = sites_[i];
    counters.sites.push_back({.site = static_cast<int64_t>(i) + 1,
                              .address = ipv4_text(address(i)),
                              .up = site.up.access.counters(),
                              .down = site.down.access.counters(),
                              .malformed = site.malformed,
                              .no_such_site = site.no_such_site});
  }
  return counters;
}

}  // namespace farstep::wan
