// A line's rate shows only while a queue stands in front of it. So the pace rises until a queue
// appears, takes the rate that gets through then, and stays there. Later rises are rare and small,
// because each one may fill the queue.
#include "wan/transport/lines/uplink_pacer.h"

#include <algorithm>

namespace farstep::wan {

namespace {

// In shorter busy times connections still open their windows. Ways under 2 ms (one machine, one
// building) need no pace.
constexpr double kLeastSeconds = 1, kLeastRoundTrips = 10, kLeastRttSeconds = 0.002;
// The rate of a shorter queue varies with the bursts of single connections. A larger value would
// miss the queues of short exchanges.
constexpr double kQueueSeconds = 1;
// While a queue overflows less gets through than the line carries: 160 to 185 of 193 Mbit/s in the
// first exchange (docs/results/wan_exchange.md). So the pace rises by 10 % after each busy time
// without a queue until one appears.
constexpr double kSearch = 1.1;
// Once the rate is known, a smaller and rarer rise finds out whether the line has become faster.
// One busy time in twelve then risks a queue of 5 % of its bytes.
constexpr double kProbe = 1.05;
constexpr int kProbeEvery = 12;
// A rate below this part of the pace was measured while queues overflowed, so it is a lower bound.
// No measurement chose the value. With a larger one a noisy rate sets off a new search. With a
// smaller one a lower bound passes for the line's rate.
constexpr double kOverrun = 0.93;
// A rate below this part of the pace may be a passing fault, and counts only if it comes twice. No
// measurement chose this value either. It distinguishes a fault of the line from usual variation.
constexpr double kException = 0.5;

}  // namespace

void UplinkPacer::begin(double now_seconds) {
  // A busy time is of all messages together, because they share the line.
  if (under_way_++ > 0) return;
  began_seconds_ = now_seconds;
  queued_since_.reset();
  was_sending_ = true;  // from now on
  queue_seconds_ = line_ = 0;
  bytes_.clear();
}

void UplinkPacer::forget() {
  pace_.reset();
  queued_since_.reset();
  queue_seconds_ = line_ = 0;
}

void UplinkPacer::observe(const LineSample& sample) {
  if (under_way_ == 0) return;
  least_rtt_seconds_ = sample.least_rtt_seconds;
  // A site that waits for peers keeps its old round trips. Between two messages it may have nothing
  // to send for a moment, so one sample does not count.
  const bool is_waiting = !sample.is_sending && !was_sending_;
  was_sending_ = sample.is_sending;
  // A queue on one way only belongs to that peer's line, not to this site's.
  if (!sample.has_queue_everywhere() || is_waiting) {
    // A gap ends the sample: that time says nothing of the line.
    queued_since_.reset();
    return;
  }
  if (!queued_since_) queued_since_ = sample;
  const double seconds = sample.now_seconds - queued_since_->now_seconds;
  if (seconds < std::max(kQueueSeconds, queue_seconds_)) return;
  // The longest time with a queue gives the best figure of the rate.
  queue_seconds_ = seconds;
  line_ =
      8 * static_cast<double>(sample.delivered_bytes - queued_since_->delivered_bytes) / seconds;
}

std::optional<Paces> UplinkPacer::end(double now_seconds, int peer, uint64_t bytes) {
  bytes_[peer] += bytes;
  // Between messages of one exchange the pace stays, as a change would disturb the measurement.
  if (--under_way_ > 0) return std::nullopt;
  const double seconds = now_seconds - began_seconds_;
  if (least_rtt_seconds_ < kLeastRttSeconds || seconds < kLeastSeconds ||
      seconds < kLeastRoundTrips * least_rtt_seconds_ || !learn()) {
    return std::nullopt;
  }
  double all_bytes = 0;
  for (const auto& [_, sent] : bytes_) all_bytes += static_cast<double>(sent);
  Paces paces;
  // A peer's part follows its bytes, so that all peers finish at the same time.
  for (const auto& [to, sent] : bytes_) {
    if (sent > 0) paces[to] = *pace_ * static_cast<double>(sent) / all_bytes;
  }
  return paces;
}

bool UplinkPacer::learn() {
  if (line_ == 0) {
    // No queue: the line carried the pace and may carry more.
    if (!pace_ || --until_rise_ > 0) return false;
    *pace_ *= is_known_ ? kProbe : kSearch;
    return true;
  }
  // The second exception in a row is believed: the line has really become slower.
  was_exception_ = pace_ && line_ < kException * *pace_ && !was_exception_;
  if (was_exception_) return false;
  // While queues overflow, less than the line's rate gets through: search upwards from there.
  is_known_ = pace_ && line_ >= kOverrun * *pace_;
  until_rise_ = is_known_ ? kProbeEvery : 1;
  pace_ = line_;
  return true;
}

}  // namespace farstep::wan
