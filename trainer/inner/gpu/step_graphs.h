// Records the work of whole steps, so that one call launches all of it.
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

// The shape that determines a step's work: examples of one task have parts of one size.
struct StepShape {
  int64_t examples = 0, targets = 0, micro_batch = 0;
  bool operator==(const StepShape&) const = default;
};

// Work that can be launched again and again.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void play() = 0;
};

class WorkRecorder {
 public:
  virtual ~WorkRecorder() = default;
  // Records the kernels that `work` launches; the device runs none of them. Throws the exceptions
  // of `work`, and throws if `work` cannot be recorded. After an exception the device accepts work
  // as before.
  virtual std::unique_ptr<Recording> record(const std::function<void()>& work) = 0;
};

class StepGraphs {
 public:
  // The number of shapes that are kept. The least recently used one is dropped. A plan changes
  // batch or micro-batch now and then, and each recording holds memory of the device.
  static constexpr std::size_t kMostShapes = 8;

  // Without a recorder all work is launched kernel by kernel.
  explicit StepGraphs(std::unique_ptr<WorkRecorder> recorder) : recorder_(std::move(recorder)) {}

  // Launches `work`, the work of `shape`. `memory` returns the version of the memory that the work
  // uses; the first `work` of a shape may change it. If it differs from the last run's, all
  // recordings are dropped. If a recording fails, a log message says so and recording ends for
  // good.
  void run(const StepShape& shape, const std::function<int64_t()>& memory,
           const std::function<void()>& work);

 private:
  struct Known {
    StepShape shape;
    std::unique_ptr<Recording> recording;  // null after the first step
  };

  void give_first(const StepShape& shape, const std::function<int64_t()>& memory,
                  const std::function<void()>& work);

  std::unique_ptr<WorkRecorder> recorder_;
  std::list<Known> known_;  // the most recently used first
  int64_t memory_ = 0;
};

}  // namespace farstep
