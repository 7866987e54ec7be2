// theta_global and its momentum are one flat vector each. A fragment is a range of it, so fragments
// in any order give what one step over all would give.
#include "outer_optimizer/outer_optimizer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "trainer/base/error.h"

namespace farstep::outer_optimizer {

namespace {

void check_size(const Range& range, std::size_t size) {
  FARSTEP_CHECK(static_cast<std::size_t>(range.size()) == size, "{} values for a range of {}", size,
                range.size());
}

}  // namespace

OuterOptimizer::OuterOptimizer(const NesterovSettings& settings, std::span<const float> theta)
    : settings_(settings), theta_global_(theta.begin(), theta.end()), momentum_(theta.size()) {}

int64_t OuterOptimizer::delta(const Range& range, std::span<const float> theta_local,
                              std::span<float> delta) const {
  const auto global = part(theta_global_, range);
  check_size(range, theta_local.size());
  check_size(range, delta.size());
  int has_bad = 0;  // without the position, so that the compiler vectorises the loop
  for (std::size_t k = 0; k < delta.size(); ++k) {
    // A NaN fails every comparison, so this finds NaN and infinity at once.
    delta[k] = global[k] - theta_local[k];
    has_bad |= !(std::abs(delta[k]) <= std::numeric_limits<float>::max());
  }
  if (has_bad == 0) return -1;
  // The second pass is rare: the run ends with this message.
  const auto bad = std::ranges::find_if(delta, [](float value) { return !std::isfinite(value); });
  return range.begin + (bad - delta.begin());
}

uint64_t OuterOptimizer::checksum(const Range& range) const {
  return farstep::checksum(std::as_bytes(part(theta_global_, range)));
}

// The sites vote on this hash before the step is taken: until then no state has changed, and a
// failed exchange can be repeated.
uint64_t OuterOptimizer::checksum_after(int64_t from, const Range& range,
                                        std::span<const float> mean, OuterStep step) const {
  StreamingChecksum checksum;
  // The part before the range has been applied already, so with the range it is all of
  // theta_global.
  checksum.update(std::as_bytes(part(theta_global_, {from, range.begin})));
  checksum_outer_step(step, settings_, mean, part(theta_global_, range), part(momentum_, range),
                      checksum);
  return checksum.value();
}

void OuterOptimizer::apply(const Range& range, std::span<const float> mean, OuterStep step) {
  take_outer_step(step, settings_, mean, part(theta_global_, range), part(momentum_, range));
}

void OuterOptimizer::merge(const Range& range, float alpha, std::span<float> theta_local) const {
  const auto global = part(theta_global_, range);
  check_size(range, theta_local.size());
  for (std::size_t k = 0; k < theta_local.size(); ++k) {
    theta_local[k] = alpha * theta_local[k] + (1 - alpha) * global[k];
  }
}

}  // namespace farstep::outer_optimizer
