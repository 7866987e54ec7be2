#include "wan/roster/arrival_history.h"

#include "tests/support/catch.h"

using namespace farstep;
using namespace farstep::wan;

namespace {

const std::vector<std::string> kSites = {"a", "b", "c"};

// Plays syncs of rounds of 100 s, to which c comes so much later than a and b. The first one begins
// with `begin_seconds`. Returns when the last is committed.
double play(ArrivalHistory& history, double begin_seconds,
            const std::vector<double>& late_seconds) {
  double now_seconds = begin_seconds;
  for (const double late : late_seconds) {
    history.arrive("a", now_seconds + 99);
    history.arrive("b", now_seconds + 100);
    history.arrive("c", now_seconds + 100 + late);
    history.arrive("c", now_seconds + 1000);  // a repetition
    now_seconds += 100 + late + 5;
    history.commit(now_seconds);
  }
  return now_seconds;
}

}  // namespace

TEST_CASE("a site is waited for one round longer than usual") {
  ArrivalHistory history(10, 3600);
  const double now_seconds = play(history, 0, {0, 20, 7});
  CHECK(history.usual_seconds("c") == 20);
  history.arrive("a", now_seconds + 90);
  CHECK_FALSE(history.limit_seconds("c", kSites));  // half of three are two
  history.arrive("b", now_seconds + 100);
  CHECK(history.limit_seconds("c", kSites) == now_seconds + 100 + 20 + 100);
}

TEST_CASE("little is known of the first syncs, and nothing of a site that was away") {
  ArrivalHistory history(10, 3600);
  double now_seconds = play(history, 0, {0, 20});
  history.arrive("a", now_seconds);
  history.arrive("b", now_seconds);
  CHECK_FALSE(history.limit_seconds("c", kSites));
  now_seconds = play(history, now_seconds, {0, 0});
  history.arrive("a", now_seconds);
  history.arrive("b", now_seconds);
  CHECK(history.limit_seconds("c", kSites));
  history.forget("c");
  CHECK_FALSE(history.limit_seconds("c", kSites));
  CHECK(history.usual_seconds("c") == 0);
}

TEST_CASE("the wait beyond the usual has a least and a most") {
  for (const auto& [least, most, wait] :
       {std::tuple(10.0, 30.0, 30.0), std::tuple(400.0, 500.0, 400.0),
        std::tuple(1.0, 900.0, 250.0)}) {
    ArrivalHistory history(least, most);
    const double now_seconds = play(history, 0, {250, 250, 250});
    history.arrive("a", now_seconds + 99);
    history.arrive("b", now_seconds + 100);
    CHECK(history.limit_seconds("c", kSites) == now_seconds + 100 + 250 + wait);
  }
}

TEST_CASE("a sync that begins anew waits for all once more") {
  ArrivalHistory history(10, 3600);
  const double now_seconds = play(history, 0, {0, 0, 0});
  history.arrive("a", now_seconds + 99);
  history.arrive("b", now_seconds + 100);
  history.restart();
  CHECK_FALSE(history.limit_seconds("c", kSites));
  history.arrive("a", now_seconds + 150);
  history.arrive("b", now_seconds + 151);
  CHECK(history.limit_seconds("c", kSites) == now_seconds + 151 + 151);
}

TEST_CASE("a site that stays slow is as slow as usual") {
  ArrivalHistory history(10, 3600);
  play(history, 0, {1000, 0, 0, 0, 0, 0, 0, 0});
  CHECK(history.usual_seconds("c") == 1000);
  play(history, 5000, {0});
  CHECK(history.usual_seconds("c") == 0);
}

TEST_CASE("two sites and one") {
  ArrivalHistory history(10, 3600);
  for (double now_seconds = 0; now_seconds < 300; now_seconds += 100) {
    history.arrive("a", now_seconds + 90);
    history.arrive("b", now_seconds + 95);
    history.commit(now_seconds + 100);
  }
  history.arrive("a", 390);
  CHECK(history.limit_seconds("b", {"a", "b"}) == 390 + 5 + 90);
  ArrivalHistory alone(10, 3600);
  alone.commit(100);
  CHECK_FALSE(alone.limit_seconds("a", {"a"}));
}
