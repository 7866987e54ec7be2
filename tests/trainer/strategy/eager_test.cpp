// Eager updates, against the paper's formula in double precision.
#include "tests/support/catch.h"
#include "tests/trainer/strategy/replica.h"
#include "tests/wan/transport/run_ranks.h"

namespace farstep {
namespace {

constexpr int kEagerValues = 5;
constexpr int64_t kRounds = 6;

RunConfig eager_run(int num_sites) {
  auto run = strategy_run(num_sites, 1, 0, 0, 4);
  run.strategy.kind = outer_optimizer::StrategyKind::kEagerUpdates;
  run.outer.rounds = kRounds;
  run.outer.learning_rate = 0.6;
  run.outer.momentum = 0.7;
  run.outer.averaging = outer_optimizer::AveragingRule::kTokens;
  return run;
}

// Of a site in a round of its own; they differ, so that weights do.
int64_t steps_of(int site) {
  return 4 + 3 * site;
}

void step(std::vector<float>& theta, std::size_t site) {
  for (int value = 0; value < kEagerValues; ++value) {
    auto& local = theta[static_cast<std::size_t>(value)];
    local -= static_cast<float>(pull_of(site, value) * (local - place_of(site, value)));
  }
}

// Every site's value after each round but the last, as the paper has it, and theta_global at the
// end: the outer optimizer's result on the means of all rounds.
struct Expected {
  std::vector<std::vector<double>> local;  // by round, by site
  double global = 1;
};

Expected replay(int num_sites, int value) {
  const auto n = static_cast<std::size_t>(num_sites);
  const double eta = 0.6, mu = 0.7;
  Expected expected;
  std::vector<double> theta(n, 1), momentum(n, 0), before(n, 0), counted(n, 0);
  double mean_before = 0, global_momentum = 0;
  for (int64_t round = 1; round <= kRounds; ++round) {
    double mean = 0, all_steps = 0;
    std::vector<double> delta(n);
    for (std::size_t site = 0; site < n; ++site) {
      double local = theta[site];
      for (int64_t k = 0; k < steps_of(static_cast<int>(site)); ++k) {
        local -= pull_of(site, value) * (local - place_of(site, value));
      }
      delta[site] = theta[site] - local;
      all_steps += double(steps_of(static_cast<int>(site)));
      mean += double(steps_of(static_cast<int>(site))) * delta[site];
    }
    mean /= all_steps;
    for (std::size_t site = 0; site < n; ++site) {
      // What its delta counts, as far as the site knows it.
      const double weight =
          round == 1 ? 1 / double(n) : double(steps_of(static_cast<int>(site))) / all_steps;
      const double eager = mean_before + weight * delta[site] - counted[site] * before[site];
      momentum[site] = mu * momentum[site] + eager;
      theta[site] -= eta * (eager + mu * momentum[site]);
      before[site] = delta[site];
      counted[site] = weight;
    }
    global_momentum = mu * global_momentum + mean;
    expected.global -= eta * (mean + mu * global_momentum);
    mean_before = mean;
    expected.local.push_back(theta);
  }
  return expected;
}

TEST_CASE("eager updates follow the formula of the paper") {
  for (const int num_sites : {1, 2, 3}) {
    EagerSites sites(eager_run(num_sites), std::vector<float>(kEagerValues, 1));
    const auto traces = wan::run_ranks(num_sites, [&](int rank) {
      auto& replica = *sites.replicas[static_cast<std::size_t>(rank)];
      std::vector<std::vector<float>> trace;
      for (int64_t round = 1; round <= kRounds; ++round) {
        replica.run_round(round, steps_of(rank),
                          [&](auto& theta) { step(theta, static_cast<std::size_t>(rank)); });
        trace.push_back(replica.theta);
      }
      return trace;
    });
    for (int value = 0; value < kEagerValues; ++value) {
      const auto index = static_cast<std::size_t>(value);
      const auto expected = replay(num_sites, value);
      for (std::size_t site = 0; site < traces.size(); ++site) {
        for (std::size_t round = 0; round + 1 < kRounds; ++round) {
          INFO("site " << site << " of " << num_sites << " after round " << round + 1);
          REQUIRE(traces[site][round][index] == Approx(expected.local[round][site]).margin(1e-5));
        }
        REQUIRE(traces[site].back()[index] == Approx(expected.global).margin(1e-5));
        REQUIRE(sites.replicas[site]->strategy.theta_global()[index] == traces[site].back()[index]);
      }
    }
  }
}

TEST_CASE("one eager site goes the way of one that waits") {
  auto run = eager_run(1);
  EagerSites eager(run, start_values(23));
  run.strategy.kind = outer_optimizer::StrategyKind::kLowCommunication;
  run.outer.mean_rounds = 0;  // an eager run has none
  Sites plain(run, start_values(23));
  for (int64_t round = 1; round <= kRounds; ++round) {
    const auto move = [](auto& theta) { wander(theta, 0); };
    eager.replicas[0]->run_round(round, 4, move);
    plain.replicas[0]->run_round(round, 4, move);
    for (std::size_t k = 0; k < 23; ++k) {
      REQUIRE(eager.replicas[0]->theta[k] == Approx(plain.replicas[0]->theta[k]).margin(1e-5));
    }
  }
  CHECK(eager.replicas[0]->strategy.syncs_done() == kRounds);
}

TEST_CASE("an eager round begins with a sync, and so does not keep the state of its start") {
  EagerSites sites(eager_run(1), start_values(23));
  auto& replica = *sites.replicas[0];
  for (int64_t round = 1; round <= 3; ++round) {
    replica.begin(round, 4);
    CHECK(replica.strategy.is_before_syncs() == (round == 1));  // there is none before
    for (int step = 0; step < 4; ++step) replica.step([](auto& theta) { wander(theta, 0); });
    CHECK(replica.strategy.is_before_syncs() == (round == 1));
    replica.end();
    replica.steps_done = 0;
  }
}

TEST_CASE("eager sites hold one theta_global after every round and tell of the sync before") {
  auto run = eager_run(3);
  run.sync.codec = {.kind = outer_optimizer::CodecKind::kInt4, .block = 4};
  EagerSites sites(run, start_values(23));
  const auto seen = wan::run_ranks(3, [&](int rank) {
    auto& replica = *sites.replicas[static_cast<std::size_t>(rank)];
    std::vector<std::string> hashes;
    std::vector<int64_t> rounds;
    for (int64_t round = 1; round <= kRounds; ++round) {
      replica.run_round(
          round, steps_of(rank), [&](auto& theta) { wander(theta, rank); },
          [&](const auto& applied) {
            for (const auto& sync : applied) {
              rounds.push_back(sync.id.round);
              hashes.push_back(sync.theta_hash);
            }
          });
      hashes.push_back(hash_of(replica.strategy.theta_global()));
    }
    return std::pair{hashes, rounds};
  });
  for (const auto& [hashes, rounds] : seen) {
    REQUIRE(hashes == seen[0].first);
    REQUIRE(hashes.back() == hashes[hashes.size() - 2]);  // the last vote is on what follows
    REQUIRE(rounds == std::vector<int64_t>{1, 2, 3, 4, 5, 6});
  }
}

}  // namespace
}  // namespace farstep
