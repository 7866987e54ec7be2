// Tells whether a way loses packets although no queue stands on it: then a congestion control that
// takes every loss for a full queue (CUBIC) leaves most of the line unused, and one that measures
// (BBR) does not.
//
// Fed with samples of all connections with one peer. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include "wan/transport/line_sample.h"

namespace farstep {

class LossWatch {
 public:
  // Whether this sample is the one that shows at least two lost packets in ten thousand, at several
  // moments and with no queue before or after: up to there CUBIC fills usual lines.
  bool is_lossy(const LineSample& sample);

 private:
  std::optional<LineSample> last_;
  double last_loss_seconds_ = 0;
  // Of the time without a queue; halved again and again, so that the past fades.
  double delivered_bytes_ = 0, retransmitted_bytes_ = 0, losses_ = 0;
};

}  // namespace farstep
