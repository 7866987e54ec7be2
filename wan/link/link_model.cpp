#include "wan/link/link_model.h"

#include "trainer/base/mix.h"

namespace farstep::wan {

Transit LinkModel::send(double start_seconds, int64_t bytes, double most_bits_per_second,
                        double pause_seconds) {
  // A message cannot enter the link faster than the uplink gives it.
  const double rate = std::min(most_bits_per_second, shape_.rate_bits_per_second);
  const double bits = kBitsPerByte * static_cast<double>(bytes);
  free_seconds_ = start_seconds + bits / rate + pause_seconds;
  // A shortened delay lets no packet overtake those before it.
  last_arrival_seconds_ = std::max(last_arrival_seconds_, free_seconds_ + shape_.delay_seconds);
  return {.leave_seconds = free_seconds_, .arrive_seconds = last_arrival_seconds_};
}

bool LinkModel::loses_packet() {
  // 53 bits fill a double's mantissa: a number in [0, 1). Numbered instead of drawn from a
  // generator: a packet's loss depends on its number alone.
  const double drawn = static_cast<double>(mix(loss_key_ + packets_++) >> 11) * 0x1p-53;
  return drawn < shape_.loss;
}

void LinkModel::set_shape(const LinkShape& shape, double from_seconds) {
  shape_ = shape;
  // Data that waits, as at a cut link, cannot leave in the past.
  free_seconds_ = std::max(free_seconds_, from_seconds);
}

}  // namespace farstep::wan
