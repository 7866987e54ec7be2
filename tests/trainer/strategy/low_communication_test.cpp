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

TEST_CASE("a sync that fails changes nothing and can be done again") {
  for (const int64_t delay : {0, 2}) {
    auto run = strategy_run(1, 3, delay, 0.5, 12);
    run.sync.codec.kind = CodecKind::kInt8;
    Alone alone(run);
    auto& replica = alone.replica;
    replica.run_round(1, 12, [](auto& theta) { wander(theta, 0); });
    replica.strategy.begin_round(2, 12);
    for (replica.steps_done = 1; replica.steps_done < 4; ++replica.steps_done) {
      wander(replica.theta, 0);
      replica.strategy.count_step(1);
      if (replica.steps_done < 2) replica.sync(false);
    }
    const auto before = snapshot_of(replica);
    alone.exchange.fails = true;
    CHECK_THROWS_AS(replica.sync(false), PeerError);
    auto after = snapshot_of(replica);
    CHECK(after.state["sent"].is_null() == (delay == 0));
    after.state["sent"] = nullptr;
    CHECK(after == before);
    alone.exchange.fails = false;
    CHECK(replica.sync(false).applied.size() == 1);
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
            steps.push_back(sync.contributions[0].steps);
            tokens.push_back(sync.contributions[0].tokens);
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
  using Parts = std::vector<Range>;
  CHECK(cut() == Parts{{0, 2}, {2, 4}, {4, 6}});
  run.sync.partition = PartitionRule::kLayer;  // tensors begin at 0 and 3
  CHECK(cut() == Parts{{0, 3}, {3, 3}, {3, 6}});
  run.sync.exchange = ExchangeKind::kParameterServer;
  CHECK(cut() == Parts{{0, 6}, {6, 6}, {6, 6}});
  run.sync.partition = PartitionRule::kBytes;
  run.sync.servers = {"s2", "s1"};
  CHECK(cut() == Parts{{0, 0}, {0, 3}, {3, 6}});
}

TEST_CASE("a round that ends early or late applies all its fragments at its end") {
  for (const int64_t steps : {1, 3, 6, 9}) {
    Alone alone(strategy_run(1, 3, 1, 0, 6));
    auto& replica = alone.replica;
    replica.strategy.begin_round(1, 6);  // as planned
    std::size_t applied = 0;
    for (replica.steps_done = 1; replica.steps_done <= steps; ++replica.steps_done) {
      wander(replica.theta, 0);
      replica.strategy.count_step(1);
      applied += replica.sync(false).applied.size();
    }
    CHECK(applied == static_cast<std::size_t>(std::min<int64_t>(2, steps / 2)));
    applied += replica.sync(true).applied.size();
    CHECK(applied == 3);
    CHECK(replica.strategy.fragments_applied() == 0);
    CHECK(hash_of(replica.strategy.theta_global()) != hash_of(start_values(11)));
  }
}

}  // namespace
}  // namespace farstep
