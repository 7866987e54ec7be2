#include "wan/transport/uplink_pacer.h"

#include <algorithm>

namespace farstep {

namespace {

constexpr double kLeastSeconds = 1, kLeastRoundTrips = 10, kLeastRttSeconds = 0.002;
// Round trips of a busy time in which little is sent: the first messages are on their way, then the
// last answers.
constexpr double kQuietRoundTrips = 2;
constexpr double kSearch = 1.25;    // steps upwards until the line is the limit
constexpr double kProbe = 1.03;     // and from then on, as lines get faster
constexpr double kReached = 0.9;    // a pace that is the limit is reached to this share
constexpr double kException = 0.5;  // less is a trouble that may pass, if it comes once

}  // namespace

void UplinkPacer::begin(double now_seconds) {
  if (under_way_++ > 0) return;
  began_seconds_ = now_seconds;
  rtt_seconds_ = 0;
  bytes_.clear();
}

std::optional<Paces> UplinkPacer::end(double now_seconds, int peer, uint64_t bytes,
                                      double rtt_seconds) {
  bytes_[peer] += bytes;
  rtt_seconds_ = std::max(rtt_seconds_, rtt_seconds);
  if (--under_way_ > 0) return std::nullopt;
  const double seconds = now_seconds - began_seconds_;
  if (rtt_seconds_ < kLeastRttSeconds || seconds < kLeastSeconds ||
      seconds < kLeastRoundTrips * rtt_seconds_) {
    return std::nullopt;
  }
  double all_bytes = 0;
  for (const auto& [_, sent] : bytes_) all_bytes += static_cast<double>(sent);
  const double pace = next_pace(8 * all_bytes / (seconds - kQuietRoundTrips * rtt_seconds_));
  Paces paces;
  for (const auto& [to, sent] : bytes_) {
    if (sent > 0) paces[to] = pace * static_cast<double>(sent) / all_bytes;
  }
  return paces;
}

double UplinkPacer::next_pace(double reached) {
  if (!pace_) {
    pace_ = kSearch * reached;
  } else if (reached >= kReached * *pace_) {
    *pace_ *= is_searching_ ? kSearch : kProbe;
    was_exception_ = false;
  } else if (reached < kException * *pace_ && !was_exception_) {
    was_exception_ = true;
  } else {
    is_searching_ = false;
    was_exception_ = false;
    pace_ = kProbe * reached;
  }
  return *pace_;
}

}  // namespace farstep
