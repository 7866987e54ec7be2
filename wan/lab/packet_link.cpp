// The model of wan/link with what only packets have: a queue that ends, and a fate that is counted.
#include "wan/lab/packet_link.h"

#include "trainer/base/mix.h"

namespace farstep::wan {

PacketLink::PacketLink(const LinkShape& shape, uint64_t seed) : model_(shape, mix(seed)) {}

PacketTransit PacketLink::enter(double now_seconds, int64_t bytes) {
  // A dropped packet is counted too, so that the shape does not change which packets are lost.
  const bool is_lost = model_.loses_packet();
  if (shape().is_cut) {
    counters_.cut.add(bytes);
    return {{}, Fate::kCut};
  }
  const double start_seconds = model_.start_seconds(now_seconds);
  // The length of the queue is the time that a packet would wait in it.
  if (start_seconds - now_seconds > shape().queue_seconds) {
    counters_.queue_full.add(bytes);
    return {{}, Fate::kQueueFull};
  }
  (is_lost ? counters_.lost : counters_.passed).add(bytes);
  return {model_.send(start_seconds, bytes), is_lost ? Fate::kLost : Fate::kArrives};
}

}  // namespace farstep::wan
