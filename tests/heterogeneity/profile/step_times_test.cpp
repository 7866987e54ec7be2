#include "heterogeneity/profile/step_times.h"

#include <set>
#include <utility>

#include "tests/support/catch.h"
#include "tests/support/fake_clock.h"
#include "trainer/base/error.h"

namespace farstep::heterogeneity {

TEST_CASE("Steps to time fit the device and tell all costs apart") {
  for (int64_t most = 1; most <= 20; ++most) {
    for (int64_t micro_batch = 1; micro_batch <= 24; ++micro_batch) {
      const auto steps = steps_to_time(micro_batch, most);
      std::set<std::pair<int64_t, int64_t>> kinds;
      std::set<int64_t> single;
      bool accumulates = false;
      for (const auto& step : steps) {
        CHECK(step.micro_batch >= 1);
        CHECK(step.micro_batch <= most);
        kinds.emplace(step.micro_batch, step.batch.value_or(step.micro_batch));
        if (!step.batch) single.insert(step.micro_batch);
        accumulates = accumulates || step.batch == 4 * step.micro_batch;
      }
      CHECK(kinds.size() == steps.size());
      CHECK(accumulates);
      CHECK(single.contains(std::min(micro_batch, most)));
      if (most > 1) CHECK(single.size() >= 2);
    }
  }
  CHECK_THROWS_AS(steps_to_time(0, 4), InternalError);
  CHECK_THROWS_AS(steps_to_time(4, 0), InternalError);
}

TEST_CASE("Step times are the medians of steps that follow one of their own micro-batch") {
  for (const int64_t most : {1, 2, 8, 16}) {
    FakeClock clock;
    int64_t turns = 0, last = 0;
    const auto seconds_of = [](int64_t batch, int64_t micro_batch) {
      return 0.5 + 0.25 * static_cast<double>((batch + micro_batch - 1) / micro_batch) +
             0.125 * static_cast<double>(batch);
    };
    const auto untimed = [&](int64_t batch, int64_t micro_batch) {
      CHECK(batch == micro_batch);
      last = micro_batch;
    };
    const auto timed = [&](int64_t batch, int64_t micro_batch) {
      CHECK(last == micro_batch);
      const double hiccup = turns++ == 1 ? 100 : 0;
      clock.advance(seconds_of(batch, micro_batch));
      return seconds_of(batch, micro_batch) + hiccup;
    };
    const auto steps = measure_step_times(steps_to_time(4, most), untimed, timed, 0, clock);
    CHECK(turns == 3 * static_cast<int64_t>(steps.size()));
    for (const auto& step : steps) {
      CHECK(step.seconds == seconds_of(step.batch.value_or(step.micro_batch), step.micro_batch));
    }
  }
}

}  // namespace farstep::heterogeneity
