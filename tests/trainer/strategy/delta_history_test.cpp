#include "trainer/strategy/outer_sync/delta_history.h"

#include <cmath>
#include <limits>

#include "outer_optimizer/schedule/outliers.h"
#include "tests/support/catch.h"
#include "tests/trainer/strategy/vector_sites.h"

namespace farstep {
namespace {

using outer_optimizer::Work;

TEST_CASE("the extent of any number of values is that of a plain loop") {
  for (const std::size_t size : {0, 1, 15, 16, 17, 31, 32, 33, 1000}) {
    auto values = start_values(size);
    if (size > 20) values[size - 2] = -7;
    double squares = 0, largest = 0;
    for (const float value : values) {
      squares += static_cast<double>(value) * value;
      largest = std::max(largest, std::abs(static_cast<double>(value)));
    }
    const auto extent = extent_of(values);
    CHECK(extent.norm == Approx(std::sqrt(squares)).epsilon(1e-14));
    CHECK(extent.largest == largest);
  }
  const std::vector<float> endless{1, std::numeric_limits<float>::infinity(), 2};
  CHECK(std::isinf(extent_of(endless).largest));
  const std::vector<float> large(1000, std::numeric_limits<float>::max());
  CHECK(std::isfinite(extent_of(large).norm));
}

TEST_CASE("the bound of a delta with feedback has the largest value that was sent before it") {
  const std::vector<float> delta{3, -4};
  const Work work{.steps = 2, .rates = 0.5};
  DeltaHistory history;
  history.restart(2, true);
  CHECK(history.figures(0, delta, work, 10, true).bound == 10);  // nothing was sent before
  CHECK(history.figures(0, delta, work, 0, true).bound == 0);    // unknown
  history.add(0, history.figures(0, delta, work, 10, true), work);
  CHECK(history.figures(0, delta, work, 10, true).bound == 14);
  CHECK(history.figures(0, delta, work, 10, false).bound == 10);
  CHECK(history.figures(1, delta, work, 10, true).bound == 10);  // another fragment
  CHECK(history.figures(0, delta, {.steps = 2}, 10, true).bound == 0);
  history.restart(2, false);
  CHECK(history.figures(0, delta, work, 10, true).bound == 0);
  CHECK(history.figures(0, delta, work, 10, false).bound == 10);
}

TEST_CASE("the usual pace is the median of the last eight") {
  DeltaHistory history;
  history.restart(1, true);
  const Work work{.steps = 1, .rates = 1};
  for (int round = 0; round < 20; ++round) {
    // From 100 downwards: the last eight are 88 to 81.
    const std::vector<float> delta{static_cast<float>(std::exp((100 - round) / 10.0))};
    const auto figures = history.figures(0, delta, work, 0, false);
    CHECK(figures.known_paces == std::min(round, 8));
    history.add(0, figures, work);
  }
  const auto figures = history.figures(0, std::vector<float>{1}, work, 0, false);
  CHECK(figures.usual_pace == Approx(8.45).margin(0.051));
  CHECK(figures.pace_spread == Approx(0.2).margin(0.051));
  DeltaHistory restored;
  restored.restore(history.state());
  CHECK(restored.figures(0, std::vector<float>{1}, work, 0, false) == figures);
  // A delta of zeros has no pace.
  history.add(0, history.figures(0, std::vector<float>{0}, work, 0, false), work);
  CHECK(history.figures(0, std::vector<float>{1}, work, 0, false).usual_pace == figures.usual_pace);
}

}  // namespace
}  // namespace farstep
