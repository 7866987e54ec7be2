// Syncs that are stopped, given up, or lost with a peer.
#include <future>

#include "tests/support/catch.h"
#include "tests/trainer/strategy/replica.h"
#include "trainer/base/error.h"

namespace farstep {
namespace {

// Of the first of two equal fragments.
std::string hash_of_start(const std::vector<float>& theta) {
  return hash_of(std::span(theta).first(theta.size() / 2));
}

// What a site brings that the test stands for.
const wan::Contribution kOther{.work = {.steps = 1}, .timing = {.steps = 1, .batch = 1}};

// A site of two that has sent its first fragment; the test stands for the other one.
struct Sent {
  explicit Sent(int64_t delay_steps = 2) : sites(strategy_run(2, 2, delay_steps, 0, 8), start) {
    replica().begin(1, 8);
    step();
    step();
  }
  Replica& replica() { return *sites.replicas[0]; }
  Synced step() {
    return replica().step([](auto& theta) { wander(theta, 0); });
  }
  // Up to the step after which the mean is applied.
  Synced go_on() {
    step();
    return step();
  }
  const std::vector<float> start = std::vector<float>(6, 1.0F);
  Sites sites;
};

TEST_CASE("a sync that waits for a site is given up and stays sent") {
  Sent sent;
  sent.sites.meeting.wait_for_arrival(0, {});
  CHECK_THROWS_AS(sent.replica().strategy.state(), InternalError);  // it is under way
  sent.replica().strategy.settle();
  const auto state = sent.replica().strategy.state();
  CHECK(state["sent"]["work"]["steps"] == 2);
  CHECK(state["fragments_applied"] == 0);
  sent.replica().strategy.settle();  // nothing is left to give up
}

TEST_CASE("a stop ends the wait at the step where a mean is due") {
  for (const int64_t delay : {0, 2}) {
    Sites sites(strategy_run(2, 2, delay, 0, 8), std::vector<float>(6, 1.0F));
    std::stop_source stop;
    auto waiting = std::async(std::launch::async, [&] {
      return sites.replicas[0]->run_round(
          1, 8, [](auto& theta) { wander(theta, 0); }, {}, stop.get_token());
    });
    sites.meeting.wait_for_arrival(0, {});
    stop.request_stop();
    CHECK_FALSE(waiting.get());
    CHECK(sites.replicas[0]->strategy.syncs_of_round() == 0);
    CHECK(sites.replicas[0]->strategy.state()["sent"].is_null() == (delay == 0));
  }
}

TEST_CASE("a sync that all sites have begun is not given up, and applied when that is due") {
  Sent sent;
  auto& other = *sent.sites.replicas[1];
  const auto move = [](auto& theta) { wander(theta, 1); };
  other.begin(1, 8);
  for (int step = 0; step < 3; ++step) other.step(move);
  CHECK(other.step(move).applied.size() == 1);  // so both have arrived and voted
  sent.replica().strategy.settle();
  // It counts in a checkpoint of this moment, and nothing is sent again.
  const auto state = sent.replica().strategy.state();
  CHECK(state["syncs_done"] == 1);
  CHECK(state["fragments_applied"] == 0);
  CHECK(state["sent"].is_null());
  CHECK(sent.step().applied.empty());
  CHECK(sent.step().applied.size() == 1);
  CHECK(sent.replica().strategy.state()["syncs_done"] == 1);
  CHECK(std::ranges::equal(sent.replica().strategy.theta_global(), other.strategy.theta_global()));
}

TEST_CASE("a lost site ends the wait of the others with its name") {
  SECTION("while they wait for it") {
    Sent sent;
    sent.sites.meeting.lose("s1");
    CHECK_THROWS_WITH(sent.go_on(), Catch::Contains("s1"));
    CHECK(sent.replica().strategy.state()["sent"]["work"]["steps"] == 2);
  }
  SECTION("when they would end") {
    Sent sent;
    sent.sites.meeting.lose("s1");
    CHECK_THROWS_WITH(sent.replica().strategy.settle(), Catch::Contains("s1"));
    CHECK(sent.replica().strategy.state()["sent"]["work"]["steps"] == 2);
  }
  SECTION("in the middle of the exchange") {
    Sent sent;
    CHECK(sent.sites.meeting.arrive(1, 0, {}, kOther, hash_of_start(sent.start), {}));
    sent.sites.transports[0]->abort("s1", "site s1 is gone");
    CHECK_THROWS_WITH(sent.go_on(), Catch::Contains("s1"));
    CHECK(sent.replica().strategy.state()["sent"]["work"]["steps"] == 2);
  }
}

TEST_CASE("a strategy is destroyed whatever is under way") {
  Sent waits;
  Sent exchanges;
  CHECK(exchanges.sites.meeting.arrive(1, 0, {}, kOther, hash_of_start(exchanges.start), {}));
  exchanges.sites.transports[0]->abort("s1", "the test is over");
}

TEST_CASE("a state of another run is refused") {
  Sites sites(strategy_run(1, 2, 0, 0, 8), std::vector<float>(6, 1.0F));
  auto& strategy = sites.replicas[0]->strategy;
  auto state = strategy.state();
  strategy.restore(state);
  state["fragments_applied"] = 2;
  CHECK_THROWS_AS(strategy.restore(state), DataError);
  state["fragments_applied"] = 0;
  state["work"].push_back(state["work"][0]);
  CHECK_THROWS_WITH(strategy.restore(state), Catch::Contains("3 fragments"));
  CHECK_THROWS_WITH(strategy.restore(Json::object()), Catch::Contains("is missing"));
}

}  // namespace
}  // namespace farstep
