// Records the kernels of whole steps, so that one call launches all of them.
//
// Steps of one shape launch the same kernels at the same places in memory. The first step of a
// shape launches them one by one and makes the allocations of a first use. The second is recorded
// and launched; later ones are only launched. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>

namespace farstep {

// The shape that determines a step's kernels: examples of one task have parts of one size.
struct StepShape {
  int64_t examples = 0, targets = 0, micro_batch = 0;
  bool operator==(const StepShape&) const = default;
};

// Kernels that can be launched again and again.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void replay() = 0;
};

class StepRecorder {
 public:
  virtual ~StepRecorder() = default;
  // Records the kernels that `launch` launches; the device runs none of them. Throws the exceptions
  // of `launch`, and throws if it cannot be recorded. After an exception the device accepts kernels
  // as before.
  virtual std::unique_ptr<Recording> record(const std::function<void()>& launch) = 0;
};

class StepGraphs {
 public:
  // The number of shapes that are kept. The least recently used one is dropped. A plan changes
  // batch or micro-batch now and then, and each recording holds memory of the device.
  static constexpr std::size_t kMostShapes = 8;

  // Without a recorder all steps are launched kernel by kernel.
  explicit StepGraphs(std::unique_ptr<StepRecorder> recorder) : recorder_(std::move(recorder)) {}

  // Launches a step of `shape` as `launch` does. `memory` returns the version of the memory that
  // the step uses; the first step of a shape may change it. If it differs from the last run's, all
  // recordings are dropped. If a recording fails, a log message says so and recording ends for
  // good.
  void run(const StepShape& shape, const std::function<int64_t()>& memory,
           const std::function<void()>& launch);

 private:
  struct Known {
    StepShape shape;
    std::unique_ptr<Recording> recording;  // null after the first step
  };

  void give_first(const StepShape& shape, const std::function<int64_t()>& memory,
                  const std::function<void()>& launch);

  std::unique_ptr<StepRecorder> recorder_;
  std::list<Known> known_;  // the most recently used first
  int64_t memory_ = 0;
};

}  // namespace farstep
