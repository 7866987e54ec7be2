// Runs whose way to sync changes between two rounds.
#include "tests/support/catch.h"
#include "tests/trainer/strategy/alone.h"
#include "tests/wan/transport/run_ranks.h"

namespace farstep {
namespace {

TEST_CASE("after a change of everything all sites hold one theta_global") {
  auto run = strategy_run(3, 1, 0, 0, 12);
  Sites sites(run, start_values(23));
  std::vector<outer_optimizer::SyncConfig> rounds(5, run.sync);
  rounds[1].fragments = 3;
  rounds[1].codec.kind = outer_optimizer::CodecKind::kInt4;
  rounds[2].fragments = 2;
  rounds[2].delay_steps = 2;
  rounds[2].codec = {.kind = outer_optimizer::CodecKind::kInt8, .block = 4};
  rounds[3].alpha = 0.5;
  rounds[3].codec.kind = outer_optimizer::CodecKind::kBf16;
  const std::vector<double> shares{1, 0, 3};
  const auto hashes = wan::run_ranks(3, [&](int site) {
    auto& replica = *sites.replicas[static_cast<std::size_t>(site)];
    std::vector<std::string> seen;
    for (std::size_t round = 0; round < rounds.size(); ++round) {
      replica.strategy.retune(rounds[round], round % 2 == 0 ? std::span<const double>() : shares);
      replica.run_round(
          static_cast<int64_t>(round) + 1, 12 + site, [&](auto& theta) { wander(theta, site); },
          [&](const auto& applied) {
            for (const auto& sync : applied) seen.push_back(sync.theta_hash);
          });
    }
    return seen;
  });
  REQUIRE(hashes[0].size() == 1 + 3 + 2 + 1 + 1);
  for (const auto& seen : hashes) REQUIRE(seen == hashes[0]);
  CHECK(sites.replicas[0]->strategy.syncs_done() == 8);
}

// Between the two, one with other members may have begun a sync at some of the sites.
TEST_CASE("shares end with their generation, even if the next has the same members") {
  const auto run = strategy_run(3, 1, 0, 0, 4);
  Sites sites(run, start_values(23));
  const std::vector<double> shares{1, 0, 3};
  for (const int64_t generation : {1, 2}) {
    sites.meeting.set_generation(generation);
    wan::run_ranks(3, [&](int site) {
      auto& replica = *sites.replicas[static_cast<std::size_t>(site)];
      if (generation == 1) replica.strategy.retune(run.sync, shares);
      return static_cast<int>(
          replica.run_round(generation, 4, [&](auto& theta) { wander(theta, site); }));
    });
    for (const auto& replica : sites.replicas) {
      const auto left = generation == 1 ? shares : std::vector<double>();
      CHECK(replica->strategy.state()["sync"]["tuning"]["shares"] == Json(left));
      CHECK(replica->theta == sites.replicas[0]->theta);
    }
  }
}

TEST_CASE("a change reaches the exchange in the next round") {
  Alone alone(strategy_run(2, 1, 0, 0, 4), start_values(12));
  auto sync = alone.replica.strategy.sync_config();
  const auto asked = [&](const std::vector<double>& shares) {
    alone.exchange.points.clear();
    alone.exchange.codecs.clear();
    alone.replica.strategy.retune(sync, shares);
    CHECK(alone.replica.strategy.sync_config().fragments == sync.fragments);
    alone.replica.run_round(1, 4, [](auto& theta) { wander(theta, 0); });
    return alone.exchange.points.front().partitions;
  };
  CHECK(asked({}) == outer_optimizer::partitions_of({{0, 6}, {6, 12}}));
  CHECK(alone.exchange.codecs == std::vector<std::string>{"fp32"});
  sync.fragments = 2;
  sync.codec = {.kind = outer_optimizer::CodecKind::kInt4, .block = 2};
  CHECK(asked({1, 2}) == outer_optimizer::partitions_of({{0, 2}, {2, 6}}));
  CHECK(alone.exchange.codecs == std::vector<std::string>{"int4", "int4"});
  CHECK(asked({}) == outer_optimizer::partitions_of({{0, 4}, {4, 6}}));  // no block is cut in two
}

TEST_CASE("a fragment of others brings their mean work") {
  Alone alone(strategy_run(1, 2, 0, 0, 8), start_values(12));
  auto& replica = alone.replica;
  std::vector<int64_t> steps, tokens;
  const auto run_round = [&](int64_t round) {
    replica.run_round(
        round, 8, [](auto& theta) { wander(theta, 0); },
        [&](const auto& applied) {
          for (const auto& sync : applied) {
            steps.push_back(sync.contributions[0].work.steps);
            tokens.push_back(sync.contributions[0].work.tokens);
          }
        });
  };
  auto sync = replica.strategy.sync_config();
  run_round(1);  // the first half has 4 steps that are not sent yet, the second none
  CHECK_FALSE(replica.strategy.local_is_global());
  sync.fragments = 1;
  replica.strategy.retune(sync, {});
  run_round(2);
  CHECK(replica.strategy.local_is_global());
  sync.fragments = 4;
  replica.strategy.retune(sync, {});
  run_round(3);  // quarters with 6, 4, 2 and 0 steps left
  sync.fragments = 3;
  replica.strategy.retune(sync, {});
  CHECK(replica.strategy.state()["work"][0]["steps"] == 6);  // 5.5 of (3 x 6 + 1 x 4) / 4
  CHECK(steps == std::vector<int64_t>{4, 8, 10, 2, 4, 6, 8});
  CHECK(tokens == std::vector<int64_t>{40, 80, 100, 20, 40, 60, 80});
}

TEST_CASE("what lossy codecs left out travels when one without loss follows") {
  auto run = strategy_run(1, 1, 0, 0, 4);
  run.outer.learning_rate = 1;
  run.outer.momentum = 0;
  run.sync.codec = {.kind = outer_optimizer::CodecKind::kInt4, .block = 8};
  Sites sites(run, start_values(37));
  auto& replica = *sites.replicas[0];
  auto moved = start_values(37);  // as if every step's move had reached theta_global
  int64_t round = 0;
  const auto run_round = [&] {
    replica.run_round(++round, 4, [&](auto& theta) {
      const auto before = theta;
      wander(theta, 0);
      for (std::size_t k = 0; k < moved.size(); ++k) moved[k] += theta[k] - before[k];
    });
  };
  const auto worst = [&] {
    float largest = 0;
    for (std::size_t k = 0; k < moved.size(); ++k) {
      largest = std::max(largest, std::abs(moved[k] - replica.strategy.theta_global()[k]));
    }
    return largest;
  };
  const auto num_residuals = [&] { return replica.strategy.own_buffers().size(); };
  auto sync = run.sync;
  sync.codec.error_feedback = true;
  for (const auto& [kind, fragments] : std::vector<std::pair<outer_optimizer::CodecKind, int64_t>>{
           {outer_optimizer::CodecKind::kInt4, 1},
           {outer_optimizer::CodecKind::kInt2, 1},
           {outer_optimizer::CodecKind::kInt4, 1}}) {
    sync.codec.kind = kind;
    sync.fragments = fragments;
    replica.strategy.retune(sync, {});
    run_round();
    CHECK(worst() > 1e-3F);
    CHECK(num_residuals() > 0);
  }
  sync.codec.kind = outer_optimizer::CodecKind::kFp32;
  replica.strategy.retune(sync, {});
  CHECK(num_residuals() > 0);
  run_round();
  CHECK(worst() < 1e-5F);
  CHECK(num_residuals() == 0);
}

TEST_CASE("the last rounds' codec delivers what the coarse one left out") {
  for (const int64_t fine_rounds : {0, 1, 2, 9}) {
    for (const auto fine_codec :
         {outer_optimizer::CodecKind::kFp32, outer_optimizer::CodecKind::kInt8}) {
      auto run = strategy_run(1, 2, 0, 0, 4);
      run.outer.rounds = 4;
      run.outer.learning_rate = 1;
      run.outer.momentum = 0;
      run.sync.codec = {.kind = outer_optimizer::CodecKind::kInt2, .error_feedback = true};
      run.sync.fine_rounds = fine_rounds;
      run.sync.fine_codec = fine_codec;
      Sites sites(run, start_values(37));
      auto& replica = *sites.replicas[0];
      auto moved = start_values(37);
      for (int64_t round = 1; round <= run.outer.rounds; ++round) {
        // All of a round's move comes before its first sync.
        replica.run_round(round, 4, [&, step = 0](auto& theta) mutable {
          if (step++ > 0) return;
          const auto before = theta;
          wander(theta, 0);
          for (std::size_t k = 0; k < moved.size(); ++k) moved[k] += theta[k] - before[k];
        });
        float largest = 0;
        for (std::size_t k = 0; k < moved.size(); ++k) {
          largest = std::max(largest, std::abs(moved[k] - replica.strategy.theta_global()[k]));
        }
        INFO(fine_rounds << " fine rounds, after round " << round);
        const bool is_fine = round > run.outer.rounds - fine_rounds;
        CHECK((largest < 2e-3F) == is_fine);
      }
    }
  }
}

TEST_CASE("without feedback nothing that was left out stays") {
  auto run = strategy_run(1, 1, 0, 0, 4);
  run.sync.codec = {.kind = outer_optimizer::CodecKind::kInt4, .block = 8};
  Sites sites(run, start_values(37));
  auto& replica = *sites.replicas[0];
  replica.run_round(1, 4, [](auto& theta) { wander(theta, 0); });
  CHECK_FALSE(replica.strategy.own_buffers().empty());
  auto sync = run.sync;
  sync.codec.error_feedback = false;
  replica.strategy.retune(sync, {});
  replica.run_round(2, 4, [](auto& theta) { wander(theta, 0); });
  CHECK(replica.strategy.own_buffers().empty());
}

TEST_CASE("a change is refused in a round and where it concerns the whole run") {
  Alone alone(strategy_run(1, 2, 2, 0, 8), start_values(12));
  auto& strategy = alone.replica.strategy;
  const auto sync = strategy.sync_config();
  auto other = sync;
  other.exchange = outer_optimizer::ExchangeKind::kParameterServer;
  CHECK_THROWS_AS(strategy.retune(other, {}), InternalError);
  other = sync;
  other.lanes = 7;
  CHECK_THROWS_AS(strategy.retune(other, {}), InternalError);
  CHECK_THROWS_AS(strategy.retune(sync, std::vector<double>{1, 2}), InternalError);
  alone.replica.begin(1, 8);
  CHECK_THROWS_AS(strategy.retune(sync, {}), InternalError);
}

}  // namespace
}  // namespace farstep
