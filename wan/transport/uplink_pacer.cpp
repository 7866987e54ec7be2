#include "wan/transport/uplink_pacer.h"

#include <algorithm>

namespace farstep {

namespace {

constexpr double kLeastSeconds = 1, kLeastRoundTrips = 10, kLeastRttSeconds = 0.002;
constexpr double kQueueSeconds = 1;  // enough to tell the line's speed
constexpr double kSearch = 1.1;      // after a busy time without a queue, until the line is known
constexpr double kProbe = 1.05;  // and then, once in kProbeEvery such times, as lines get faster
constexpr int kProbeEvery = 12;
constexpr double kOverrun = 0.93;   // less than this share of the pace: the queues ran over
constexpr double kException = 0.5;  // less than this share is a trouble that may pass

}  // namespace

void UplinkPacer::begin(double now_seconds) {
  if (under_way_++ > 0) return;
  began_seconds_ = now_seconds;
  queued_since_.reset();
  queue_seconds_ = line_ = 0;
  bytes_.clear();
}

void UplinkPacer::forget() {
  pace_.reset();
  queued_since_.reset();
  queue_seconds_ = line_ = 0;
}

void UplinkPacer::look(const LineSample& sample) {
  if (under_way_ == 0) return;
  least_rtt_seconds_ = sample.least_rtt_seconds;
  if (!sample.has_queue_everywhere()) {
    queued_since_.reset();
    return;
  }
  if (!queued_since_) queued_since_ = sample;
  const double seconds = sample.now_seconds - queued_since_->now_seconds;
  if (seconds < std::max(kQueueSeconds, queue_seconds_)) return;
  queue_seconds_ = seconds;
  line_ =
      8 * static_cast<double>(sample.delivered_bytes - queued_since_->delivered_bytes) / seconds;
}

std::optional<Paces> UplinkPacer::end(double now_seconds, int peer, uint64_t bytes) {
  bytes_[peer] += bytes;
  if (--under_way_ > 0) return std::nullopt;
  const double seconds = now_seconds - began_seconds_;
  if (least_rtt_seconds_ < kLeastRttSeconds || seconds < kLeastSeconds ||
      seconds < kLeastRoundTrips * least_rtt_seconds_ || !learn()) {
    return std::nullopt;
  }
  double all_bytes = 0;
  for (const auto& [_, sent] : bytes_) all_bytes += static_cast<double>(sent);
  Paces paces;
  for (const auto& [to, sent] : bytes_) {
    if (sent > 0) paces[to] = *pace_ * static_cast<double>(sent) / all_bytes;
  }
  return paces;
}

bool UplinkPacer::learn() {
  if (line_ == 0) {
    if (!pace_ || --until_rise_ > 0) return false;
    *pace_ *= is_known_ ? kProbe : kSearch;
    return true;
  }
  was_exception_ = pace_ && line_ < kException * *pace_ && !was_exception_;
  if (was_exception_) return false;
  // Where queues ran over, less got through than the line can do.
  is_known_ = pace_ && line_ >= kOverrun * *pace_;
  until_rise_ = is_known_ ? kProbeEvery : 1;
  pace_ = line_;
  return true;
}

}  // namespace farstep
