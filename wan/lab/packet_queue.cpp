// A list through the packets themselves and a pool: moving a packet allocates nothing, as delays
// must stay exact.
#include "wan/lab/packet_queue.h"

namespace farstep::wan {

namespace {

// 1.5 MB at an MTU of 1500, which the system backs only when it is used.
constexpr std::size_t kSlabPackets = 1024;

}  // namespace

Packet* PacketPool::take() {
  if (free_ == nullptr) {
    // Uninitialised: the system allocates the memory only at its first use.
    slabs_.push_back({std::make_unique<Packet[]>(kSlabPackets),
                      std::make_unique_for_overwrite<std::byte[]>(kSlabPackets * capacity_bytes_)});
    auto& slab = slabs_.back();
    // Backwards, so that the list begins with the slab's first packet: memory is used in order.
    for (std::size_t i = kSlabPackets; i-- > 0;) {
      slab.packets[i].content = {slab.memory.get() + i * capacity_bytes_, capacity_bytes_};
      slab.packets[i].next = free_;
      free_ = &slab.packets[i];
    }
  }
  Packet* packet = free_;
  free_ = packet->next;
  packet->next = nullptr;
  packet->content = {packet->content.data(), capacity_bytes_};
  return packet;
}

void PacketPool::give_back(Packet* packet) {
  packet->next = free_;
  free_ = packet;
}

void PacketQueue::push(Packet* packet) {
  packet->next = nullptr;
  // `last_` is stale while the queue is empty; nobody reads it then.
  (first_ == nullptr ? first_ : last_->next) = packet;
  last_ = packet;
}

Packet* PacketQueue::pop() {
  Packet* packet = first_;
  first_ = packet->next;
  return packet;
}

}  // namespace farstep::wan
