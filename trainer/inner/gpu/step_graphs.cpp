#include "trainer/inner/gpu/step_graphs.h"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace farstep {

void StepGraphs::run(const StepShape& shape, const std::function<int64_t()>& memory,
                     const std::function<void()>& launch) {
  if (!recorder_) return launch();
  // A graph has fixed addresses, so all are dropped when memory was allocated anew.
  if (memory() != memory_) known_.clear();
  const auto found = std::ranges::find(known_, shape, &Known::shape);
  if (found == known_.end()) return give_first(shape, memory, launch);
  known_.splice(known_.begin(), known_, found);
  if (!found->recording) {
    try {
      found->recording = recorder_->record(launch);
    } catch (const std::exception& error) {
      spdlog::warn(
          "the step cannot be recorded, and the GPU gets it kernel by kernel from now on ({}); "
          "inner.cuda_graph: false does so from the start",
          error.what());
      known_.clear();
      recorder_.reset();
      return launch();
    }
  }
  found->recording->replay();
}

void StepGraphs::give_first(const StepShape& shape, const std::function<int64_t()>& memory,
                            const std::function<void()>& launch) {
  launch();
  if (memory() != memory_) known_.clear();
  memory_ = memory();
  // The least recently used shape goes. Each graph keeps memory of its own.
  if (known_.size() == kMostShapes) known_.pop_back();
  known_.push_front({shape, nullptr});
}

}  // namespace farstep
