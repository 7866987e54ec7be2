// What a donor may send in place of the run's state.
#include <limits>
#include <stop_token>

#include "tests/trainer/round/returning_sites.h"
#include "trainer/base/error.h"
#include "trainer/settings/run_config.h"

namespace farstep {
namespace {

// Sites after some rounds, and the state that one of them hands over.
struct Donation {
  explicit Donation(const RoundKind& kind) : sites(run_of(kind, 3, 8), {1, 0.5, 1}) {
    std::stop_source stop;
    sites[0].validation.before_validation = [&](int64_t rounds_done) {
      if (rounds_done == 3) stop.request_stop();
    };
    sites.run(stop.get_token());
    REQUIRE(sites[0].run.position.rounds_done == 3);
    auto shared = shared_state(sites[0].run);
    shared.momentum_hash = hash_of(sites[0].strategy->outer_momentum());
    state = to_json(shared);
    sites.renew(1);
  }
  Json tuning(const std::string& shares) const {
    return {{"sync", to_json(sites.sites[0]->run.config.sync)}, {"shares", Json::parse(shares)}};
  }

  FakeSites sites;
  Json state;
};

// What is wrong with a state: the value at `path` is another one.
struct Fault {
  const char* path;
  Json value;
};

void check_refused(Donation& donation, const std::vector<Fault>& faults) {
  auto& run = donation.sites[1].run;
  for (const auto& [path, value] : faults) {
    INFO(path << ": " << value.dump());
    auto spoiled = donation.state;
    spoiled[Json::json_pointer(path)] = value;
    CHECK_THROWS_AS(take_shared_state(run, read_shared_state(spoiled.dump())), DataError);
  }
  auto other = donation.state;
  other["rate_cycle"]["begin_share"] = 0.5;
  take_shared_state(run, read_shared_state(other.dump()));
  CHECK(run.cycle.begin_share == 0.5);
  // None of them leaves anything behind.
  take_shared_state(run, read_shared_state(donation.state.dump()));
  const auto& donor = donation.sites[0];
  CHECK(run.planner.state() == donor.planner.state());
  CHECK(run.position.windows == donor.run.position.windows);
  CHECK(run.position.rounds_done == donor.run.position.rounds_done);
}

TEST_CASE("a donor's state that does not fit the run is refused as data") {
  for (const auto& kind : {kPlainRounds, kHybridRounds, kFragmentedRounds, kDelayedRounds}) {
    Donation donation(kind);
    check_refused(donation, {{"/rounds_done", 9},
                             {"/rounds_done", 0},
                             {"/members", Json::array()},
                             {"/members", {"s0", "s0", "s1"}},
                             {"/members", {"s0", "s1", "elsewhere"}},
                             {"/reduction_shares", Json::array({1.0})},
                             {"/reduction_shares", {1, -1, 1}},
                             {"/reduction_shares", {0, 0, 0}},
                             {"/rate_cycle/end", 0},
                             {"/rate_cycle/warmup_fraction", 2},
                             {"/run_sequences", int64_t{1} << 60},
                             {"/returned_sequences", Json::parse(R"([{"begin": 5, "end": 4}])")},
                             {"/planner/sites/0/micro_batch", 0},
                             {"/planner/sites/0/batch", 0},
                             {"/planner/sites/1/local_steps", int64_t{1} << 60},
                             {"/planner/sites/1/steps_before", 1'000'000},
                             {"/strategy", Json::array()},
                             {"/strategy/work", Json::array()},
                             {"/strategy/syncs_done", std::numeric_limits<int64_t>::max()},
                             {"/strategy/fragments_applied", 1},
                             {"/strategy/sync/tuning", donation.tuning("[1, 1]")},
                             {"/strategy/sync/tuning", donation.tuning("[1, 1, -1]")},
                             {"/strategy/sync/tuning", donation.tuning("[0, 0, 0]")},
                             {"/strategy/sync/tuning",
                              {{"sync", {{"fragments", 1000}}}, {"shares", Json::array()}}}});
  }
}

TEST_CASE("the refusal of a donor's shares says which and what of them is wrong") {
  Donation donation(kPlainRounds);
  auto spoiled = donation.state;
  spoiled["reduction_shares"] = {1, -1, 1};
  CHECK_THROWS_WITH(take_shared_state(donation.sites[1].run, read_shared_state(spoiled.dump())),
                    Catch::Contains("reduction_shares") && Catch::Contains("none may be below 0"));
}

TEST_CASE("a donor's state of a run with eager updates has one fragment") {
  Donation donation(kEagerRounds);
  check_refused(donation, {{"/strategy/sync/tuning",
                            {{"sync", {{"fragments", 2}}}, {"shares", Json::array()}}},
                           {"/strategy/sync/tuning", donation.tuning("[0, 0, 0]")},
                           {"/members", Json::array()}});
}

TEST_CASE("a donor's state that is no JSON of a state is refused as data") {
  for (const std::string text :
       {"", "{", "[]", "{}", R"({"rounds_done": 1e999})", "\xff\xfe", "null"}) {
    CHECK_THROWS_AS(read_shared_state(text), DataError);
  }
  CHECK_THROWS_AS(read_shared_state(std::string(100'000, '[')), DataError);
}

}  // namespace
}  // namespace farstep
