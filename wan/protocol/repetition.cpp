#include "wan/protocol/repetition.h"

#include <algorithm>
#include <cmath>

namespace farstep::wan {

namespace {

// Of repeated requests, at most: little beside what a line of 10 Mbit/s carries. A request of a few
// kilobytes goes out with each of the first heartbeats.
constexpr double kBytesPerSecond = 32 << 10;
constexpr double kLongestPauseBeats = 16;  // or what the bytes alone demand

}  // namespace

void Repetition::note_copy(double now_seconds, std::size_t bytes, double heartbeat_seconds) {
  const double least_seconds = static_cast<double>(bytes) / kBytesPerSecond;
  const double most_seconds = std::max(least_seconds, kLongestPauseBeats * heartbeat_seconds);
  pause_seconds_ = std::min(std::ldexp(least_seconds, num_copies_), most_seconds);
  sent_seconds_ = now_seconds;
  ++num_copies_;
}

bool Repetition::is_paced(double now_seconds) const {
  return !is_sent() || now_seconds >= sent_seconds_ + pause_seconds_;
}

bool Repetition::is_due(double now_seconds, double answered_beat_seconds) const {
  return !is_sent() || (is_paced(now_seconds) && answered_beat_seconds > sent_seconds_);
}

}  // namespace farstep::wan
