#include "trainer/strategy/outer_sync/delta_history.h"

#include <cmath>

#include "outer_optimizer/schedule/outliers.h"
#include "tests/support/catch.h"

namespace farstep {
namespace {

using outer_optimizer::Work;

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
  CHECK(figures.usual_pace == Approx(8.45).margin(1e-6));
  CHECK(figures.pace_spread == Approx(0.2).margin(1e-6));
  DeltaHistory restored;
  restored.restore(history.state());
  CHECK(restored.figures(0, std::vector<float>{1}, work, 0, false) == figures);
  // A delta of zeros has no pace.
  history.add(0, history.figures(0, std::vector<float>{0}, work, 0, false), work);
  CHECK(history.figures(0, std::vector<float>{1}, work, 0, false).usual_pace == figures.usual_pace);
}

}  // namespace
}  // namespace farstep
