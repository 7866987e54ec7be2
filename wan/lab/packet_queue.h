// Packets under way, without an allocation per packet. A pool grows to the largest number of
// packets under way at once. Queues are linked lists through the packets.
//
// A packet belongs to the pool, and is in at most one queue. Not thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace farstep::wan {

struct Packet {
  Packet* next = nullptr;
  double due_seconds = 0;  // when it reaches the end of the link that it is on
  std::size_t destination = 0;
  std::span<std::byte> content;  // the IP packet, at the start of the packet's memory
};

class PacketPool {
 public:
  // Every packet has `capacity_bytes` of memory.
  explicit PacketPool(std::size_t capacity_bytes) : capacity_bytes_(capacity_bytes) {}
  // Returns a packet whose content spans its whole memory; valid until give_back().
  Packet* take();
  void give_back(Packet* packet);

 private:
  struct Slab {
    std::unique_ptr<Packet[]> packets;
    std::unique_ptr<std::byte[]> memory;
  };

  const std::size_t capacity_bytes_;
  std::vector<Slab> slabs_;
  Packet* free_ = nullptr;
};

// First in, first out.
class PacketQueue {
 public:
  bool is_empty() const { return first_ == nullptr; }
  const Packet& front() const { return *first_; }
  void push(Packet* packet);
  Packet* pop();

 private:
  Packet* first_ = nullptr;
  Packet* last_ = nullptr;
};

}  // namespace farstep::wan
