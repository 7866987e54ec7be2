// What a site knows of its own deltas, for the figures by which the coordinator judges them
// (outer_optimizer/schedule/outliers.h). Values; not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "outer_optimizer/schedule/delta_figures.h"
#include "outer_optimizer/schedule/work.h"
#include "trainer/config/fields.h"

namespace farstep {

// The past of a fragment's deltas.
struct DeltaPast {
  std::vector<double> paces;          // of the last that counted, the newest last
  std::optional<double> largest = 0;  // value of the last one that was sent; nullopt: unknown

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("paces", paces, "log(norm / sum of learning rates) of the last deltas that counted");
    visit("largest", largest, "largest value of the last one that was sent; null: unknown",
          at_least(0));
  }
};

class DeltaHistory {
 public:
  // Begins with so many fragments. Nothing was sent, or it is unknown what was.
  void restart(int64_t fragments, bool is_known);

  // Returns the figures of a fragment's delta, which is finite. `step_bound` is the largest value
  // that its steps can make; 0: unknown. A residual is at most the largest value that was sent
  // last.
  outer_optimizer::DeltaFigures figures(int64_t fragment, std::span<const float> delta,
                                        const outer_optimizer::Work& work, double step_bound,
                                        bool has_residual) const;
  // Counts a delta that was sent, in a sync that is committed.
  void add(int64_t fragment, const outer_optimizer::DeltaFigures& figures,
           const outer_optimizer::Work& work);

  // The state for a checkpoint, by fragment.
  const std::vector<DeltaPast>& state() const { return past_; }
  void restore(std::vector<DeltaPast> past) { past_ = std::move(past); }
  int64_t fragments() const { return std::ssize(past_); }

 private:
  std::vector<DeltaPast> past_;
};

}  // namespace farstep
