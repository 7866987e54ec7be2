// Loss of two kinds looks alike to TCP. A full queue drops packets, and slowing down is right. A
// poor line drops them at any speed, and slowing down only wastes it. Round trips show which kind
// it is: they grow only where a queue stands.
#include "wan/transport/lines/loss_watch.h"

namespace farstep::wan {

namespace {

// CUBIC's response function (RFC 9438, section 5.1) gives 94 packets a round trip for this loss at
// 80 ms. So six connections reach about 80 Mbit/s.
constexpr double kLossyShare = 2e-4;
// A single burst of losses can be an accident. With fewer, an overflow that no sample saw as a
// queue would change the control for the rest of the run.
constexpr double kLeastLosses = 4;
// The memory is 2 s at a gigabit per second. A loss of 2e-4 of these bytes is 37 packets.
constexpr double kLossRoundTrips = 2;     // losses that are closer may be one loss and its repair
constexpr double kMemoryBytes = 1 << 28;  // bytes after which the counts are halved

}  // namespace

bool LossWatch::is_lossy(const LineSample& sample) {
  const auto before = last_;
  last_ = sample;
  // A loss while a queue stands is congestion: the queue overflowed.
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

}  // namespace farstep::wan
