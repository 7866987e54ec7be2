// Detects a way that loses packets although no queue stands on it. There a congestion control that
// takes every loss for a full queue (CUBIC) leaves most of the line unused. One that measures the
// rate (BBR) does not.
//
// Gets samples of all connections with one peer. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include "wan/sockets/line_sample.h"

namespace farstep::wan {

class LossWatch {
 public:
  // Returns true for the sample that proves losses: at least two lost packets in ten thousand, at
  // several moments, without a queue before or after. Below that rate CUBIC fills usual lines.
  bool is_lossy(const LineSample& sample);

 private:
  std::optional<LineSample> last_;
  double last_loss_seconds_ = 0;
  // Counts from the time without a queue. They are halved at intervals, so that old losses fade.
  double delivered_bytes_ = 0, retransmitted_bytes_ = 0, losses_ = 0;
};

}  // namespace farstep::wan
