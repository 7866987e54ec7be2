#include "trainer/site/emulated_backward.h"

namespace farstep {

namespace {
// Forward has one product for each weight, and backward two.
constexpr double kForwardShare = 1.0 / 3;
}  // namespace

void EmulatedBackward::begin_step() {
  began_seconds_ = clock_.now_seconds();
  slept_seconds_ = 0;
  num_final_ = 0;
  next_.begin_step();
}

// The time of backward is spread evenly over the values, which is right for matrices: each value
// has the same number of products.
void EmulatedBackward::ready(std::size_t device, int64_t begin, int64_t end) {
  const std::lock_guard lock(mutex_);
  num_final_ += end - begin;
  const double done = static_cast<double>(num_final_) / static_cast<double>(size_);
  sleep_until_share(kForwardShare + (1 - kForwardShare) * done);
  next_.ready(device, begin, end);
}

bool EmulatedBackward::finish(std::size_t device) {
  sleep_until_share(1);
  return next_.finish(device);
}

void EmulatedBackward::sleep_until_share(double share) {
  const double now = clock_.now_seconds();
  clock_.sleep_until(began_seconds_ + share * seconds_);
  slept_seconds_ += clock_.now_seconds() - now;
}

}  // namespace farstep
