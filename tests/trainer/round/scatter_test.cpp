// Rounds in which the master sends all sites their batches.
#include "tests/support/catch.h"
#include "tests/trainer/round/fake_sites.h"
#include "trainer/base/error.h"

namespace farstep {
namespace {

RunConfig scattered_run(int num_sites, int64_t base_steps = 6) {
  auto run = strategy_run(num_sites, 1, 0, 0, base_steps);
  run.strategy.kind = outer_optimizer::StrategyKind::kDataParallelMaster;
  run.strategy.scatter = true;
  run.strategy.bucket_bytes = 12;
  run.sync.exchange = outer_optimizer::ExchangeKind::kParameterServer;
  run.plan.equal_steps = true;
  run.outer.rounds = 3;
  run.data.sequence_length = 8;
  return run;
}

// The same run in which each site reads its own examples.
std::unique_ptr<FakeSites> unscattered(RunConfig run, const std::vector<double>& step_seconds) {
  run.strategy.scatter = false;
  auto sites = std::make_unique<FakeSites>(run, step_seconds);
  for (auto& site : sites->sites) site->take_batches();
  return sites;
}

// Runs all sites until `dying` ends with an exception, and the others by its loss. Returns how.
std::vector<std::string> ends_of(FakeSites& sites, int dying) {
  return wan::run_ranks(static_cast<int>(sites.sites.size()), [&](int place) -> std::string {
    auto& site = sites[static_cast<std::size_t>(place)];
    try {
      run_rounds(site.run, {});
    } catch (const PeerError& error) {
      return "lost " + error.site();
    } catch (const std::exception& error) {
      if (place == dying) sites.lose(site.peers.view().own_name());
      return error.what();
    }
    return "done";
  });
}

TEST_CASE("scattered batches are those that the sites would read, and so is all that follows") {
  for (const int num_sites : {1, 2, 3}) {
    for (int master = 0; master < num_sites; ++master) {
      INFO("master " << master << " of " << num_sites);
      auto run = scattered_run(num_sites);
      run.sites.back().batch = 7;  // the others have 4
      run.sync.servers = {"s" + std::to_string(master)};
      const std::vector<double> step_seconds(run.sites.size(), 0.5);
      FakeSites sites(run, step_seconds);
      REQUIRE(sites.run() == std::vector<bool>(run.sites.size(), true));
      const auto own = unscattered(run, step_seconds);
      REQUIRE(own->run() == std::vector<bool>(run.sites.size(), true));
      for (std::size_t site = 0; site < run.sites.size(); ++site) {
        CHECK(sites[site].training.steps.size() == 18);
        CHECK(sites[site].training.steps == (*own)[site].training.steps);
        CHECK(sites[site].training.values == (*own)[site].training.values);
        CHECK(sites[site].run.position.windows == (*own)[site].run.position.windows);
      }
    }
  }
}

TEST_CASE("a round that is planned anew goes on with the batches of its new plan") {
  auto run = scattered_run(3, 24);
  run.plan.policy = heterogeneity::Policy::kHybrid;
  run.plan.base_batch = 8;
  FakeSites sites(run, {1, 1, 1});
  const auto own = unscattered(run, {1, 1, 1});
  const std::vector<double> sequence_seconds{0.1, 0.3, 0.2};
  for (std::size_t site = 0; site < 3; ++site) {
    sites[site].training.sequence_seconds = sequence_seconds[site];
    (*own)[site].training.sequence_seconds = sequence_seconds[site];
  }
  REQUIRE(sites.run() == std::vector<bool>(3, true));
  REQUIRE(own->run() == std::vector<bool>(3, true));
  for (std::size_t site = 0; site < 3; ++site) {
    const auto& steps = sites[site].training.steps;
    CHECK(steps.size() == 72);
    CHECK(steps == (*own)[site].training.steps);
    CHECK(sites[site].training.values == (*own)[site].training.values);
  }
  // Of the slowest site, which was measured in the first round.
  const auto& steps = sites[1].training.steps;
  CHECK(steps.front().sequences.size() > steps[23].sequences.size());
}

TEST_CASE("the batches count on the links, at the master and at the sites that get them") {
  const auto run = scattered_run(3);
  FakeSites sites(run, {1, 1, 1});
  REQUIRE(sites.run() == std::vector<bool>(3, true));
  const auto own = unscattered(run, {1, 1, 1});
  REQUIRE(own->run() == std::vector<bool>(3, true));
  sites[0].training.source.reset();  // the last send is over
  const auto more = [&](std::size_t site) {
    return since((*own)[site].peers.uplink().state, sites[site].peers.uplink().state);
  };
  constexpr uint64_t kBatchBytes = 18 * 4 * sizeof(int64_t);
  CHECK(more(0).sent_bytes == 2 * kBatchBytes);
  CHECK(more(0).received_bytes == 0);
  for (const std::size_t site : {1, 2}) {
    CHECK(more(site).sent_bytes == 0);
    CHECK(more(site).received_bytes == kBatchBytes);
    int64_t received = 0, received_own = 0;
    for (const auto& round : sites[site].events<RoundEvent>()) received += round.wan_bytes_received;
    for (const auto& round : (*own)[site].events<RoundEvent>()) {
      received_own += round.wan_bytes_received;
    }
    CHECK(received - received_own == static_cast<int64_t>(kBatchBytes));
  }
}

TEST_CASE("the wait for a batch is recorded as such, and makes no plan slower") {
  auto run = scattered_run(2, 12);
  run.plan.policy = heterogeneity::Policy::kHybrid;
  run.plan.base_batch = 8;
  FakeSites sites(run, {1, 1});
  for (auto& site : sites.sites) {
    site->training.sequence_seconds = 0.1;
    site->training.batch_seconds = 5;
  }
  REQUIRE(sites.run() == std::vector<bool>(2, true));
  for (const std::size_t site : {0, 1}) {
    CHECK(sites[site].run.own_plan().batch == 8);
    double waited = 0;
    for (const auto& span : sites[site].events<SpanEvent>()) {
      if (span.cause == SpanCause::kWait && span.seconds == 5) waited += span.seconds;
    }
    CHECK(waited == (site == 0 ? 0 : 3 * 12 * 5));
  }
}

TEST_CASE("a master that is lost ends the others, at that step or the one before") {
  FakeSites sites(scattered_run(3), {1, 1, 1});
  sites[0].training.before_step = [](const StepOrder& order) {
    if (order.round == 2 && order.step == 3) throw std::runtime_error("dead");
  };
  CHECK(ends_of(sites, 0) == std::vector<std::string>{"dead", "lost s0", "lost s0"});
  for (const std::size_t site : {1, 2}) {
    const auto steps = sites[site].trainer.steps_done();
    CHECK((steps == 1 || steps == 2));
    CHECK(sites[site].strategy->syncs_done() == 6 + steps);
  }
}

TEST_CASE("an example that cannot be read ends the run before its step, whichever site's it is") {
  for (const std::size_t owner : {0, 2}) {
    const auto run = scattered_run(3);
    const auto own = unscattered(run, {1, 1, 1});
    REQUIRE(own->run() == std::vector<bool>(3, true));
    FakeSites sites(run, {1, 1, 1});
    const auto& step = (*own)[owner].training.steps[8];
    CHECK((step.round == 2 && step.step == 3));
    sites[0].examples.unreadable = step.sequences.back();
    CHECK(ends_of(sites, 0) == std::vector<std::string>{"unreadable", "lost s0", "lost s0"});
    CHECK(sites[0].trainer.steps_done() == 2);
    for (const std::size_t site : {1, 2}) CHECK(sites[site].trainer.steps_done() <= 2);
  }
}

}  // namespace
}  // namespace farstep
