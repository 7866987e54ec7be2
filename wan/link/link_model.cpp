#include "wan/link/link_model.h"

#include <algorithm>

#include "trainer/base/mix.h"

namespace farstep {

namespace {

// A number of [0, 1) for the n-th packet.
double draw(uint64_t seed, uint64_t n) {
  return static_cast<double>(mix(mix(seed) + n) >> 11) * 0x1p-53;
}

}  // namespace

Transit LinkModel::enter(double now_seconds, int64_t bytes) {
  const bool is_unlucky = draw(seed_, entered_++) < shape_.loss;
  if (shape_.is_cut) {
    counters_.cut.add(bytes);
    return {.fate = Fate::kCut};
  }
  const double start_seconds = std::max(now_seconds, free_seconds_);
  if (start_seconds - now_seconds > shape_.queue_seconds) {
    counters_.queue_full.add(bytes);
    return {.fate = Fate::kQueueFull};
  }
  free_seconds_ = start_seconds + 8.0 * static_cast<double>(bytes) / shape_.rate_bits_per_second;
  last_arrival_seconds_ = std::max(last_arrival_seconds_, free_seconds_ + shape_.delay_seconds);
  (is_unlucky ? counters_.lost : counters_.passed).add(bytes);
  return {.fate = is_unlucky ? Fate::kLost : Fate::kArrives,
          .leave_seconds = free_seconds_,
          .arrive_seconds = last_arrival_seconds_};
}

}  // namespace farstep
