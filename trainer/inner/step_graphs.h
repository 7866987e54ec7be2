// The work of whole steps, recorded so that a device can be given it again at once.
//
// Steps of one shape give a device the same work, at the same places in memory. The first of a
// shape gives it piece by piece, and so makes whatever is made at a first use; the second is
// recorded, and played; from then on it is only played. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>

namespace farstep {

// What the work of a step depends on.
struct StepShape {
  int64_t sequences = 0, length = 0, micro_batch = 0;
  bool operator==(const StepShape&) const = default;
};

// Work that can be given again and again.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void play() = 0;
};

class WorkRecorder {
 public:
  virtual ~WorkRecorder() = default;
  // What `work` would give the device, which does nothing of it. Throws what `work` throws, and if
  // it cannot be recorded; the device can then be given work as before.
  virtual std::unique_ptr<Recording> record(const std::function<void()>& work) = 0;
};

class StepGraphs {
 public:
  static constexpr std::size_t kMostShapes = 8;  // the one not used for longest is forgotten

  // Without a recorder all work is given piece by piece.
  explicit StepGraphs(std::unique_ptr<WorkRecorder> recorder) : recorder_(std::move(recorder)) {}

  // Gives the device `work`, which is that of `shape`. `memory` tells the state of the memory that
  // the work is on, which `work` may change at the first time: if it is another than in the run
  // before, nothing recorded holds any longer. Where recording fails that is logged, and nothing is
  // recorded any more.
  void run(const StepShape& shape, const std::function<int64_t()>& memory,
           const std::function<void()>& work);

 private:
  struct Known {
    StepShape shape;
    std::unique_ptr<Recording> recording;  // none after the first step
  };

  void give_first(const StepShape& shape, const std::function<int64_t()>& memory,
                  const std::function<void()>& work);

  std::unique_ptr<WorkRecorder> recorder_;
  std::list<Known> known_;  // the one used last stands first
  int64_t memory_ = 0;
};

}  // namespace farstep
