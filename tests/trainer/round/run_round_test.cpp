// Whole rounds of one to five sites.
#include "trainer/round/run_round.h"

#include <cmath>

#include "outer_optimizer/schedule/averaging.h"
#include "tests/support/catch.h"
#include "tests/trainer/round/trained_windows.h"
#include "trainer/base/memory/out_of_memory.h"

namespace farstep {
namespace {

RunConfig round_run(int num_sites, int64_t base_steps = 6) {
  auto run = strategy_run(num_sites, 1, 0, 0, base_steps);
  run.outer.rounds = 3;
  run.data.sequence_length = 8;
  return run;
}

// theta_global after a run whose deltas are all averaged at each round's end, in double.
std::vector<double> expected_theta(const RunConfig& run, std::size_t size) {
  const auto start = start_values(size);
  std::vector<double> global(start.begin(), start.end()), momentum(size);
  for (int64_t round = 0; round < run.outer.rounds; ++round) {
    std::vector<double> mean(size);
    double weights = 0;
    for (std::size_t site = 0; site < run.sites.size(); ++site) {
      std::vector<float> local(global.begin(), global.end());
      const int64_t steps = run.sites[site].local_steps.value_or(run.plan.base_steps);
      for (int64_t step = 0; step < steps; ++step) wander(local, static_cast<int>(site));
      const auto batch = static_cast<double>(run.sites[site].batch.value_or(run.plan.base_batch));
      for (std::size_t k = 0; k < size; ++k) mean[k] += batch * (global[k] - double{local[k]});
      weights += batch;
    }
    for (std::size_t k = 0; k < size; ++k) {
      mean[k] /= weights;
      momentum[k] = run.outer.momentum * momentum[k] + mean[k];
      global[k] -= round < run.outer.rounds - run.outer.mean_rounds
                       ? run.outer.learning_rate * (mean[k] + run.outer.momentum * momentum[k])
                       : mean[k];
    }
  }
  return global;
}

TEST_CASE("one to five sites do the outer steps of the paper") {
  for (const int num_sites : {1, 2, 3, 5}) {
    auto run = round_run(num_sites);
    run.sites.front().batch = 7;
    run.sites.back().local_steps = 9;
    FakeSites sites(run, std::vector<double>(5, 0.5));
    CHECK(sites.run() == std::vector<bool>(run.sites.size(), true));
    const auto expected = expected_theta(run, 11);
    for (auto& site : sites.sites) {
      for (std::size_t k = 0; k < expected.size(); ++k) {
        REQUIRE(site->strategy->theta_global()[k] == Approx(expected[k]).margin(1e-5));
        REQUIRE(site->training.values[k] == site->strategy->theta_global()[k]);
      }
    }
  }
}

TEST_CASE("a site whose memory shrinks records the micro-batch that it goes on with") {
  auto run = round_run(2);
  run.plan.base_batch = 4;
  FakeSites sites(run, {0.5, 0.5});
  sites[1].training.before_step = [](const StepOrder& order) {
    if (order.round >= 2 && order.micro_batch > 3) throw NoRoomError("no room", 3);
  };
  CHECK(sites.run() == std::vector<bool>(2, true));
  std::vector<int64_t> micro_batches;
  for (const auto& round : sites[1].events<RoundEvent>())
    micro_batches.push_back(round.micro_batch);
  CHECK(micro_batches == std::vector<int64_t>{4, 3, 3});
  CHECK(sites[1].training.steps.size() == sites[0].training.steps.size());
}

TEST_CASE("every kind of sync leaves one theta_global and the same records everywhere") {
  struct Row {
    int64_t fragments, delay_steps;
    double alpha;
    bool eager;
  };
  for (const auto& row : std::vector<Row>{{1, 0, 0, false},
                                          {3, 0, 0, false},
                                          {4, 1, 0.5, false},
                                          {2, 2, 0, false},
                                          {1, 0, 0, true}}) {
    auto run = round_run(3, 12);
    run.sync.fragments = row.fragments;
    run.sync.delay_steps = row.delay_steps;
    run.sync.alpha = row.alpha;
    if (row.eager) run.strategy.kind = outer_optimizer::StrategyKind::kEagerUpdates;
    run.sites[1].local_steps = 20;
    FakeSites sites(run, {1, 0.6, 1});
    CHECK(sites.run() == std::vector<bool>(3, true));
    const auto rounds = sites[0].events<RoundEvent>();
    REQUIRE(rounds.size() == 3);
    CHECK(rounds.back().theta_hash == hash_of(sites[0].strategy->theta_global()));
    for (auto& site : sites.sites) {
      const auto own = site->events<RoundEvent>();
      REQUIRE(own.size() == rounds.size());
      for (std::size_t i = 0; i < own.size(); ++i) {
        CHECK(own[i].theta_hash == rounds[i].theta_hash);
      }
      CHECK(std::ssize(site->events<SyncEvent>()) == 3 * row.fragments);
      CHECK(site->strategy->syncs_done() == 3 * row.fragments);
      CHECK(site->peers.reports.size() == 3);
      CHECK(site->run.position.rounds_done == 3);
    }
    CHECK(sites[1].events<StepEvent>().size() == 3 * 20);
  }
}

TEST_CASE("no sequence is trained on twice and none is left out") {
  auto run = round_run(3);
  run.sites[0].batch = 2;
  run.sites[1].local_steps = 4;
  FakeSites sites(run, {1, 1, 1});
  sites.run();
  CHECK(are_windows_whole(sites));
  const auto& pool = sites[0].run.position.windows.pool();
  CHECK(pool.returned().empty());
  CHECK(pool.next() == 3 * (6 * 2 + 4 * 4 + 6 * 4));
}

TEST_CASE("the learning rate follows the share of the run that is done at every site") {
  auto run = round_run(2, 4);
  run.sites[1].local_steps = 8;
  FakeSites sites(run, {1, 1});
  sites.run();
  const auto slow = sites[0].events<StepEvent>(), fast = sites[1].events<StepEvent>();
  REQUIRE(2 * slow.size() == fast.size());
  for (std::size_t i = 0; i < slow.size(); ++i) {
    CHECK(*slow[i].learning_rate == Approx(static_cast<double>(i) / 12));
    CHECK(*fast[2 * i].learning_rate == *slow[i].learning_rate);
  }
}

TEST_CASE("sites of unequal speed have one learning rate at one place of the schedule") {
  auto run = round_run(2, 4);
  run.sites[1].local_steps = 8;
  auto& rate = run.inner.rate;
  rate.schedule = RateShape::kWsd;
  rate.decay_fraction = 0.5;
  FakeSites sites(run, {1, 1});
  std::vector<double> slow, fast;
  sites[0].training.before_step = [&](const StepOrder& order) { slow.push_back(order.rate_share); };
  sites[1].training.before_step = [&](const StepOrder& order) { fast.push_back(order.rate_share); };
  sites.run();
  REQUIRE(2 * slow.size() == fast.size());
  const auto cycle = first_cycle(rate, run.outer.rounds);
  for (std::size_t i = 0; i < slow.size(); ++i) {
    CHECK(slow[i] == Approx(rate_share(rate, cycle, static_cast<double>(i) / 4)));
    CHECK(fast[2 * i] == slow[i]);
  }
  CHECK(slow.back() < 1);
}

TEST_CASE("a step that is done late is recorded in its place and counted") {
  auto run = round_run(2);
  run.sync.fragments = 3;
  run.sync.delay_steps = 1;
  FakeSites at_once(run, {1, 1}), late(run, {1, 1});
  late[0].training.is_late = true;
  at_once.run();
  late.run();
  const auto expected = at_once[0].events<StepEvent>(), found = late[0].events<StepEvent>();
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i].round == expected[i].round);
    CHECK(found[i].step == expected[i].step);
  }
  const auto rounds = late[0].events<RoundEvent>();
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    CHECK(rounds[i].train_loss == (1 + 2 + 3 + 4 + 5 + 6) / 6.0);
    CHECK(rounds[i].theta_hash == at_once[0].events<RoundEvent>()[i].theta_hash);
  }
}

TEST_CASE("checkpoints and validation come between the rounds where the run says so") {
  auto run = round_run(1);
  run.outer.rounds = 5;
  run.checkpoint.every_rounds = 2;
  FakeSites sites(run, {1});
  sites.run();
  CHECK(sites[0].checkpoints.rounds == std::vector<int64_t>{0, 2, 4, 5});
  const auto& validated = sites[0].validation.sequences;
  REQUIRE(validated.size() == 6);
  CHECK(validated[0] == std::pair<int64_t, int64_t>{0, 0});
  for (std::size_t round = 1; round < validated.size(); ++round) {
    CHECK(validated[round].first == validated[round - 1].second);
    CHECK(validated[round].second == validated[round].first + 24);
  }
}

TEST_CASE("a site whose delta is left out begins anew, and all members record it") {
  for (const int64_t fragments : {1, 3}) {
    auto run = round_run(3);
    run.sync.fragments = fragments;
    FakeSites sites(run, {1, 1, 1});
    sites.meeting.judge_by(served_run(run).judge);
    auto& broken = sites[1].training;
    broken.before_step = [&](const StepOrder& order) {
      if (order.round == 2 && order.step == 1) broken.values[2] = 1e6F;
    };
    CHECK(sites.run() == std::vector<bool>(3, true));
    for (std::size_t site = 0; site < 3; ++site) {
      CHECK(sites[site].training.times_anew == (site == 1 ? 1 : 0));
      const auto outliers = sites[site].events<OutlierEvent>();
      REQUIRE(outliers.size() == 1);
      CHECK(outliers[0].round == 2);
      CHECK(outliers[0].fragment == 0);
      CHECK(outliers[0].delta_of == "s1");
      CHECK(outliers[0].is_left_out);
      const auto rounds = sites[site].events<RoundEvent>();
      REQUIRE(rounds.size() == 3);
      CHECK(rounds[2].theta_hash == sites[0].events<RoundEvent>()[2].theta_hash);
      CHECK(std::abs(sites[site].strategy->theta_global()[2]) < 10);
    }
  }
}

}  // namespace
}  // namespace farstep
