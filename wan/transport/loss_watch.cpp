#include "wan/transport/loss_watch.h"

namespace farstep {

namespace {

constexpr double kLossyShare = 2e-4;
constexpr double kLeastLosses = 4;
constexpr double kLossRoundTrips = 2;  // losses nearer than that may be one
constexpr double kMemoryBytes = 1 << 28;

}  // namespace

bool LossWatch::is_lossy(const LineSample& sample) {
  const auto before = last_;
  last_ = sample;
  if (!before || before->has_queue_somewhere() || sample.has_queue_somewhere()) return false;
  delivered_bytes_ += static_cast<double>(sample.delivered_bytes - before->delivered_bytes);
  const auto resent = sample.retransmitted_bytes - before->retransmitted_bytes;
  if (resent > 0) {
    retransmitted_bytes_ += static_cast<double>(resent);
    const double apart_seconds = kLossRoundTrips * sample.least_rtt_seconds;
    if (losses_ == 0 || sample.now_seconds - last_loss_seconds_ > apart_seconds) {
      ++losses_;
      last_loss_seconds_ = sample.now_seconds;
    }
  }
  const bool is_lossy =
      losses_ >= kLeastLosses && retransmitted_bytes_ >= kLossyShare * delivered_bytes_;
  if (delivered_bytes_ > kMemoryBytes) {
    delivered_bytes_ /= 2;
    retransmitted_bytes_ /= 2;
    losses_ /= 2;
  }
  return is_lossy;
}

}  // namespace farstep
