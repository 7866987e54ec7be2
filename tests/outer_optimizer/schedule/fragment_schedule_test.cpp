#include "outer_optimizer/schedule/fragment_schedule.h"

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep::outer_optimizer {
namespace {

TEST_CASE("two fragments of a round of six steps are synced every third step") {
  const FragmentSchedule at_once(6, 2, 0, 6);
  const FragmentSchedule delayed(6, 2, 1, 6);
  for (const int64_t fragment : {0, 1}) {
    CHECK(at_once.send_step(fragment) == 3 * (fragment + 1));
    CHECK(at_once.apply_step(fragment) == 3 * (fragment + 1));
    CHECK(delayed.send_step(fragment) == 3 * (fragment + 1) - 1);
    CHECK(delayed.apply_step(fragment) == 3 * (fragment + 1));
  }
}

TEST_CASE("fragments follow each other and are all applied when the round ends") {
  for (const int64_t steps : {1, 2, 3, 7, 30, 100, 997}) {
    for (const int64_t fragments : {1, 2, 3, 5, 24, 1024}) {
      for (const int64_t delay : {0, 1, 2, 5, 40, 1000}) {
        const FragmentSchedule schedule(steps, fragments, delay, 100);
        int64_t applied = 1;
        for (int64_t fragment = 0; fragment < fragments; ++fragment) {
          const int64_t send = schedule.send_step(fragment);
          const int64_t apply = schedule.apply_step(fragment);
          REQUIRE(applied <= send);
          REQUIRE(send <= apply);
          REQUIRE((delay > 0 || send == apply));
          applied = apply;
        }
        REQUIRE(applied == steps);
      }
    }
  }
}

TEST_CASE("a delay is as long a part of the round at every site") {
  struct Row {
    int64_t local_steps, delay_steps, sent_before_end;
  };
  // Of a base of 100 steps; the last of four fragments.
  for (const auto& row : std::vector<Row>{{100, 5, 5},
                                          {200, 5, 10},
                                          {50, 5, 3},
                                          {10, 5, 1},
                                          {8, 1, 1},
                                          {100, 25, 25},
                                          {100, 60, 25},
                                          {100, 0, 0}}) {
    const FragmentSchedule schedule(row.local_steps, 4, row.delay_steps, 100);
    CHECK(row.local_steps - schedule.send_step(3) == row.sent_before_end);
  }
}

TEST_CASE("a fragment is not sent before there is a step to send") {
  CHECK(FragmentSchedule(1, 1, 1, 1).send_step(0) == 1);
  CHECK(FragmentSchedule(6, 3, 2, 6).send_step(0) == 1);
  CHECK(FragmentSchedule(2, 4, 0, 8).send_step(0) == 1);
}

TEST_CASE("a schedule of nothing is a defect") {
  CHECK_THROWS_AS(FragmentSchedule(0, 1, 0, 1), InternalError);
  CHECK_THROWS_AS(FragmentSchedule(1, 0, 0, 1), InternalError);
  CHECK_THROWS_AS(FragmentSchedule(1, 1, -1, 1), InternalError);
  CHECK_THROWS_AS(FragmentSchedule(1, 1, 0, 0), InternalError);
}

}  // namespace
}  // namespace farstep::outer_optimizer
