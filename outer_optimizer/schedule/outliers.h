// Which deltas of a sync are out of all proportion. A flipped bit in one machine's memory would
// otherwise spoil the mean, and so every site (docs/outliers.md).
//
// Pure functions of what the sites say when they arrive; thread-safe. The coordinator alone judges,
// and tells the members: the last bits of a logarithm differ between machines.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "outer_optimizer/schedule/delta_figures.h"
#include "outer_optimizer/schedule/work.h"
#include "trainer/config/fields.h"

namespace farstep::outer_optimizer {

// What becomes of such a delta (`sync.outliers` of a run file).
enum class OutlierRule { kLeaveOut, kWarn, kOff };
inline std::span<const std::string_view> enum_names(OutlierRule) {
  static constexpr std::array<std::string_view, 3> kNames{"leave_out", "warn", "off"};
  return kNames;
}

// Returns the median; of an even number of values the mean of the middle two. `values` is not
// empty.
double median(std::vector<double> values);

// Returns the pace of a delta of this norm (delta_figures.h); nullopt for a norm of 0 and unknown
// rates.
std::optional<double> pace_of(double norm, const Work& work);

struct Verdict {
  bool is_left_out = false;
  std::string reason;  // empty: the delta is in proportion
};

// Returns the verdict on each member's delta, in the order of `works`. A member without work gets
// no reason, nor one without figures.
//
// A delta is left out
//   - if it has a value above twice its bound. This needs no other site;
//   - if its pace exceeds its usual one, beyond what the others' paces do, by more than log 8 and
//     six times its spread. This needs 4 known paces. Of two sites, it also needs that the other
//     one keeps its pace within a factor of 2: else nobody knows which of them is right;
//   - if less is known, when its pace exceeds the median of at least two others by log 16.
// From log 3 on a delta gets a reason alone. With OutlierRule::kWarn all do. A small delta harms
// nobody.
std::vector<Verdict> judge(OutlierRule rule, std::span<const Work> works,
                           std::span<const std::optional<DeltaFigures>> figures);

}  // namespace farstep::outer_optimizer
