#include "trainer/strategy/low_communication.h"

#include <limits>

#include "tests/support/catch.h"
#include "tests/trainer/strategy/alone.h"

namespace farstep {
namespace {

// Everything that a sync may change.
struct Snapshot {
  std::vector<float> theta, global, momentum, residuals;
  Json state;
  bool operator==(const Snapshot&) const = default;
};

Snapshot snapshot_of(Replica& replica) {
  const auto copy = [](std::span<const float> values) {
    return std::vector<float>(values.begin(), values.end());
  };
  Snapshot snapshot{replica.theta,
                    copy(replica.strategy.theta_global()),
                    copy(replica.strategy.outer_momentum()),
                    {},
                    replica.strategy.state()};
  for (const auto& buffer : replica.strategy.own_buffers()) {
    if (buffer.name == "sent_theta") continue;
    const std::span left(reinterpret_cast<const float*>(buffer.bytes.data()),
                         buffer.bytes.size() / sizeof(float));
    snapshot.residuals.insert(snapshot.residuals.end(), left.begin(), left.end());
  }
  return snapshot;
}

TEST_CASE("one site with eta 1 and no momentum and no delay goes its own way") {
  for (const int64_t fragments : {1, 2, 5}) {
    auto run = strategy_run(1, fragments, 0, 0, 10);
    run.outer.learning_rate = 1;
    run.outer.momentum = 0;
    Sites sites(run, start_values(23));
    auto alone = start_values(23);
    for (int64_t round = 1; round <= 3; ++round) {
      sites.replicas[0]->run_round(round, 10, [](auto& theta) { wander(theta, 0); });
      for (int step = 0; step < 10; ++step) wander(alone, 0);
    }
    for (std::size_t k = 0; k < alone.size(); ++k) {
      REQUIRE(sites.replicas[0]->theta[k] == Approx(alone[k]).margin(1e-4));
    }
  }
}

TEST_CASE("until its first sync is sent a round has the shared state of its start") {
  struct Row {
    int64_t fragments, delay_steps, sent_after;  // steps; 13: at the round's end
  };
  for (const auto& row : {Row{1, 0, 13}, {1, 2, 10}, {3, 0, 4}, {3, 2, 2}}) {
    Alone alone(strategy_run(1, row.fragments, row.delay_steps, 0, 12));
    auto& replica = alone.replica;
    const auto shared = [&] {
      auto snapshot = snapshot_of(replica);
      snapshot.theta.clear();
      snapshot.state.erase("work");
      return snapshot;
    };
    for (const int64_t round : {1, 2}) {
      const auto at_start = shared();
      replica.begin(round, 12);
      for (int64_t step = 1; step <= 12; ++step) {
        replica.step([](auto& theta) { wander(theta, 0); });
        CHECK(replica.strategy.is_before_syncs() == (step < row.sent_after));
        if (replica.strategy.is_before_syncs()) CHECK(shared() == at_start);
      }
      replica.end();
      replica.steps_done = 0;
      CHECK(replica.strategy.is_before_syncs());
    }
  }
}

TEST_CASE("a sync that fails changes nothing and can be done again") {
  for (const int64_t delay : {0, 2}) {
    auto run = strategy_run(1, 3, delay, 0.5, 12);
    run.sync.codec.kind = outer_optimizer::CodecKind::kInt8;
    Alone alone(run);
    auto& replica = alone.replica;
    replica.run_round(1, 12, [](auto& theta) { wander(theta, 0); });
    const auto before = snapshot_of(replica);
    auto moved = replica.theta;
    const auto move = [&](auto& theta) {
      wander(theta, 0);
      wander(moved, 0);
    };
    replica.begin(2, 12);
    alone.exchange.fails = true;
    const auto step_until_due = [&] {
      while (replica.steps_done < 12) replica.step(move);
    };
    CHECK_THROWS_AS(step_until_due(), PeerError);
    CHECK(replica.steps_done < 12);
    const auto failed = snapshot_of(replica);
    CHECK(failed.theta == moved);
    CHECK(failed.global == before.global);
    CHECK(failed.momentum == before.momentum);
    CHECK(failed.residuals == before.residuals);
    CHECK(failed.state["sent"].is_null() == (delay == 0));
    CHECK_THROWS_AS(replica.again(), PeerError);
    CHECK(snapshot_of(replica) == failed);
    alone.exchange.fails = false;
    CHECK(replica.again().applied.size() == 1);
    CHECK(snapshot_of(replica).state["fragments_applied"] == 1);
  }
}

TEST_CASE("a delta that is not finite is not sent and its tensor is named") {
  struct Row {
    int64_t fragments;
    std::size_t bad;
    std::string message;
  };
  for (const auto& row : std::vector<Row>{
           {1, 2, "round 1: the delta of first is not finite at element 2"},
           {1, 3, "round 1: the delta of second is not finite at element 3"},
           {2, 7, "round 1, fragment 1: the delta of second is not finite at element 7"}}) {
    Alone alone(strategy_run(1, row.fragments, 0, 0, 4));
    CHECK_THROWS_WITH(
        alone.replica.run_round(
            1, 4, [&](auto& theta) { theta[row.bad] = std::numeric_limits<float>::quiet_NaN(); }),
        Catch::StartsWith(row.message));
    CHECK(std::ssize(alone.exchange.points) == row.fragments - 1);
  }
}

TEST_CASE("a fragment is weighted by the work since it was last applied") {
  Sites sites(strategy_run(1, 2, 1, 0, 6), start_values(8));
  std::vector<int64_t> steps, tokens;
  for (int64_t round = 1; round <= 2; ++round) {
    sites.replicas[0]->run_round(
        round, 6, [](auto& theta) { wander(theta, 0); },
        [&](const auto& applied) {
          for (const auto& sync : applied) {
            steps.push_back(sync.contributions[0].work.steps);
            tokens.push_back(sync.contributions[0].work.tokens);
          }
        });
  }
  CHECK(steps == std::vector<int64_t>{2, 5, 5, 5});
  CHECK(tokens == std::vector<int64_t>{20, 50, 50, 50});
}

TEST_CASE("a fragment is cut among those who add as the run says") {
  auto run = strategy_run(3, 2, 0, 0, 2);
  const auto cut = [&run] {
    run.sites.resize(3);
    auto alone_run = run;
    Alone alone(alone_run, start_values(12));
    alone.replica.run_round(1, 2, [](auto& theta) { wander(theta, 0); });
    return alone.exchange.points[0].partitions;
  };
  CHECK(cut() == outer_optimizer::partitions_of({{0, 2}, {2, 4}, {4, 6}}));
  run.sync.partition = outer_optimizer::PartitionRule::kLayer;  // tensors begin at 0 and 3
  CHECK(cut() == outer_optimizer::partitions_of({{0, 3}, {3, 3}, {3, 6}}));
  run.sync.exchange = outer_optimizer::ExchangeKind::kParameterServer;
  CHECK(cut() == outer_optimizer::partitions_of({{0, 6}, {6, 6}, {6, 6}}));
  run.sync.partition = outer_optimizer::PartitionRule::kBytes;
  run.sync.servers = {"s2", "s1"};
  CHECK(cut() == outer_optimizer::partitions_of({{0, 0}, {0, 3}, {3, 6}}));
}

TEST_CASE("the next round is among the members of its own view") {
  auto run = strategy_run(3, 1, 0, 0, 2);
  run.sync.codec = {.kind = outer_optimizer::CodecKind::kInt8,
                    .block = 4};  // which leaves residuals
  const TemporaryFolder folder;
  RealClock clock;
  Recorder recorder(folder.path(), "s0", clock);
  Meeting meeting(1);  // nobody else is asked
  const auto seat = meeting.seat(0);
  auto theta = start_values(12);
  VectorTheta local(theta);
  auto view = view_of(run, 0);
  LowCommunication strategy(settings_of(run), view, {theta, {{"all", 0}}},
                            {*seat, recorder, clock});
  strategy.retune(run.sync, std::vector<double>{1, 2, 3});
  const auto round = [&](int64_t number, outer_optimizer::Exchange& exchange) {
    OneExchange exchanges(exchange);
    const PlannedWork planned{.site = "s0", .batch = 1, .local_steps = 1, .most_steps = 1};
    strategy.begin({.round = number,
                    .view = view,
                    .planned = {planned},
                    .tokens_per_step = 1,
                    .exchanges = &exchanges,
                    .theta = &local},
                   {}, {});
    wander(theta, 0);
    const heterogeneity::RoundTiming done{.steps = 1, .batch = 1, .micro_batch = 1};
    strategy.after_step(1, done, {});
    CHECK(strategy.end(done, {}).applied.size() == 1);
  };
  ScriptedExchange of_three, of_two;
  round(1, of_three);
  CHECK(of_three.points[0].partitions == outer_optimizer::partitions_of({{0, 4}, {4, 8}, {8, 12}}));
  view = {.generation = 2, .members = {"s0", "s2"}, .self = 0};
  meeting.set_generation(2);
  round(2, of_two);
  CHECK(of_three.points.size() == 1);
  // Whole blocks. The shares were by the old places, so that all have equal ones again.
  CHECK(of_two.points[0].partitions == outer_optimizer::partitions_of({{0, 8}, {8, 12}}));
}

TEST_CASE("a round that ends early or late applies all its fragments at its end") {
  for (const int64_t steps : {1, 3, 6, 9}) {
    Alone alone(strategy_run(1, 3, 1, 0, 6));
    auto& replica = alone.replica;
    std::size_t applied = replica.begin(1, 6).applied.size();  // as planned
    const auto move = [](auto& theta) { wander(theta, 0); };
    for (int64_t step = 0; step < steps; ++step) applied += replica.step(move).applied.size();
    CHECK(applied == static_cast<std::size_t>(std::min<int64_t>(2, steps / 2)));
    applied += replica.end().applied.size();
    CHECK(applied == 3);
    CHECK(replica.strategy.syncs_of_round() == 0);
    CHECK(hash_of(replica.strategy.theta_global()) != hash_of(start_values(11)));
  }
}

TEST_CASE("a state that does not fit the run is refused with what differs") {
  Alone saved(strategy_run(1, 3, 1, 0, 6));
  auto state = saved.replica.strategy.state();
  Alone other(strategy_run(1, 2, 1, 0, 6));
  CHECK_THROWS_WITH(other.replica.strategy.restore(state),
                    Catch::Contains("has 3 fragments, and this run's has 2"));
  state["fragments_applied"] = 3;
  CHECK_THROWS_WITH(saved.replica.strategy.restore(state),
                    "strategy.fragments_applied: is 3, of 3 fragments in a round");
}

// A newcomer's first sync fails in a newer view than it joined in, and it takes a donor's state
// again.
TEST_CASE("a site that takes the state of another one has its own place in the next view") {
  const auto run = strategy_run(2, 1, 0, 0, 2);
  const TemporaryFolder folder;
  RealClock clock;
  Recorder recorder(folder.path(), "s1", clock);
  Meeting meeting(2);
  const auto seat = meeting.seat(1);
  ScriptedExchange exchange;
  OneExchange exchanges(exchange);
  const auto own = view_of(run, 1);
  OuterSync sync(settings_of(run), own, {start_values(12), {{"all", 0}}}, {*seat, recorder, clock});
  auto newer = own;
  newer.generation += 4;
  sync.meet(newer, exchanges);
  sync.restore({.members = own.members, .place = 0});
  sync.meet(own, exchanges);
  CHECK(sync.state().place == 1);
}

}  // namespace
}  // namespace farstep
