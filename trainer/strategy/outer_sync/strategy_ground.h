// What every strategy is made from: settings, start values, and the objects around it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "outer_optimizer/outer_config.h"
#include "outer_optimizer/sync_config.h"
#include "trainer/base/clock.h"
#include "trainer/rate/step_bound.h"
#include "trainer/telemetry/recorder.h"
#include "wan/protocol/rendezvous.h"

namespace farstep {

// A tensor's name and its first element in the flat vector.
struct TensorStart {
  std::string name;
  int64_t begin = 0;
};

// The settings of a strategy.
struct StrategySettings {
  outer_optimizer::OuterConfig outer;
  outer_optimizer::SyncConfig sync;
  int64_t base_steps = 1;    // steps of a round, the unit of sync.delay_steps
  int64_t bucket_bytes = 0;  // of a gradient that is summed during backward
  StepBound step_bound = {};
};

// The values that a strategy starts from: theta_global, and its tensors in order and without gaps.
struct StartValues {
  std::span<const float> theta;
  std::vector<TensorStart> tensors;
};

// The objects that a strategy uses; all of them must outlive it.
struct Surroundings {
  wan::Rendezvous& rendezvous;
  Recorder& recorder;
  const Clock& clock;
  // Returns when nobody reads the strategy's state any more: when the site's newest checkpoint is
  // complete, and what it hands over is copied. The sync's worker calls it before the site arrives
  // at a sync. So no sync changes what is still being read.
  std::function<void()> wait_for_readers = [] {};
  // Returns when the checkpoint is complete. The training thread calls it before it waits for a
  // sync.
  std::function<void()> finish_checkpoint = [] {};
};

}  // namespace farstep
