#include "trainer/account/step_curve.h"

#include <cmath>

#include "tests/support/catch.h"

namespace farstep {

namespace {

Record planned(int64_t round, int64_t steps) {
  return {0, "a", PlanEvent{.round = round, .local_steps = steps}};
}
Record stepped(int64_t round, int64_t step, double loss) {
  return {0, "a",
          StepEvent{.round = round,
                    .step = step,
                    .loss = loss,
                    .gradient_norm = 2 * loss,
                    .learning_rate = 3 * loss}};
}
Record committed(int64_t round, int64_t steps) {
  RoundEvent event;
  event.round = round;
  event.local_steps = steps;
  return {0, "a", event};
}

using Points = std::vector<std::pair<double, double>>;

// Rounds and losses. The other figures are multiples of the loss here, and so must their means be.
Points losses(const StepCurve& curve) {
  Points losses;
  for (const auto& point : curve.points()) {
    CHECK(point.gradient_norm == Approx(2 * point.loss));
    CHECK(point.learning_rate == Approx(3 * point.loss));
    losses.emplace_back(point.rounds, point.loss);
  }
  return losses;
}

}  // namespace

TEST_CASE("a step's place is its share of the round that was, or is planned") {
  StepCurve curve;
  for (const auto& record : {planned(1, 4), stepped(1, 1, 5), stepped(1, 2, 4), committed(1, 2),
                             planned(2, 4), stepped(2, 1, 3), stepped(2, 2, 2)}) {
    curve.add(record);
  }
  CHECK(losses(curve) == Points{{0.5, 5}, {1, 4}, {1.25, 3}, {1.5, 2}});
  // A round that goes on for longer than planned does not pass its end.
  for (const auto& record : {stepped(2, 3, 1), stepped(2, 4, 1), stepped(2, 5, 1)}) {
    curve.add(record);
  }
  CHECK(losses(curve).back() == std::pair{2.0, 1.0});
}

TEST_CASE("with eager updates a round may end after steps of the next one") {
  StepCurve curve;
  for (const auto& record : {planned(1, 2), stepped(1, 1, 5), stepped(1, 2, 4), planned(2, 4),
                             stepped(2, 1, 3), committed(1, 2), committed(2, 2)}) {
    curve.add(record);
  }
  CHECK(losses(curve) == Points{{0.5, 5}, {1, 4}, {1.5, 3}});
}

TEST_CASE("a long curve has means of equal parts and the mean of all") {
  for (const int64_t rounds : {1, 39, 40, 41, 90, 700}) {
    constexpr int64_t kSteps = 100;
    StepCurve curve;
    double sum = 0;
    for (int64_t round = 1; round <= rounds; ++round) {
      curve.add(planned(round, kSteps));
      for (int64_t step = 1; step <= kSteps; ++step) {
        const double loss = std::sin(static_cast<double>(round * kSteps + step));
        sum += loss;
        curve.add(stepped(round, step, loss));
      }
      curve.add(committed(round, kSteps));
    }
    const auto points = losses(curve);
    const auto all = rounds * kSteps;
    int64_t group = 1;
    while (group * static_cast<int64_t>(StepCurve::kMostPoints) < all) group *= 2;
    REQUIRE(std::ssize(points) == (all + group - 1) / group);
    double mean = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const auto first = static_cast<int64_t>(i) * group;
      const auto count = std::min(group, all - first);
      mean += points[i].second * static_cast<double>(count);
      const double middle = static_cast<double>(first) + static_cast<double>(count + 1) / 2;
      REQUIRE(points[i].first == Approx(middle / kSteps));
    }
    CHECK(mean == Approx(sum).margin(1e-9));
  }
}

TEST_CASE("a round longer than memory is drawn by its plan") {
  StepCurve curve;
  constexpr int64_t kSteps = 100'000;
  curve.add(planned(1, kSteps));
  for (int64_t step = 1; step <= kSteps; ++step) curve.add(stepped(1, step, 1));
  const auto points = losses(curve);
  CHECK(points.size() <= StepCurve::kMostPoints);
  CHECK(points.back().first == Approx(1).margin(1e-3));
  for (const auto& [round, loss] : points) CHECK(loss == 1);
}

TEST_CASE("a figure that a step lacks is no number") {
  StepCurve curve;
  curve.add({0, "a", StepEvent{.round = 1, .step = 1, .loss = 2, .learning_rate = 0.5}});
  REQUIRE(curve.points().size() == 1);
  CHECK(std::isnan(curve.points()[0].gradient_norm));
  CHECK(curve.points()[0].learning_rate == 0.5);
}

}  // namespace farstep
