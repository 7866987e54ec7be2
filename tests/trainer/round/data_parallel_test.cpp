// Rounds in which all sites take every step together, by the mean of their gradients.
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <future>
#include <map>
#include <mutex>
#include <stdexcept>

#include "tests/support/catch.h"
#include "tests/trainer/round/fake_sites.h"
#include "trainer/base/error.h"

namespace farstep {
namespace {

struct Kind {
  outer_optimizer::StrategyKind strategy = outer_optimizer::StrategyKind::kRingAllReduce;
  outer_optimizer::ExchangeKind exchange = outer_optimizer::ExchangeKind::kDirect;
  outer_optimizer::PartitionRule partition = outer_optimizer::PartitionRule::kBytes;
  int num_servers = 0;
  int64_t bucket_bytes = 12;
  bool serve_alone = false;
  bool scatter = false;
};

const Kind kServers{.strategy = outer_optimizer::StrategyKind::kParameterServer,
                    .exchange = outer_optimizer::ExchangeKind::kParameterServer,
                    .num_servers = 2,
                    .serve_alone = true};

const Kind kScatter{.strategy = outer_optimizer::StrategyKind::kDataParallelMaster,
                    .exchange = outer_optimizer::ExchangeKind::kParameterServer,
                    .scatter = true};

// A ring needs Gloo: end-to-end tests have it.
const std::vector<Kind> kKinds{
    {},
    {.bucket_bytes = 4},
    {.bucket_bytes = 1 << 20},
    {outer_optimizer::StrategyKind::kParameterServer,
     outer_optimizer::ExchangeKind::kParameterServer},
    {outer_optimizer::StrategyKind::kParameterServer,
     outer_optimizer::ExchangeKind::kParameterServer, outer_optimizer::PartitionRule::kBytes, 2},
    {outer_optimizer::StrategyKind::kParameterServer,
     outer_optimizer::ExchangeKind::kParameterServer, outer_optimizer::PartitionRule::kLayer, 2},
    {outer_optimizer::StrategyKind::kParameterServer,
     outer_optimizer::ExchangeKind::kParameterServer, outer_optimizer::PartitionRule::kLayer, 3},
    {outer_optimizer::StrategyKind::kDataParallelMaster,
     outer_optimizer::ExchangeKind::kParameterServer},
    kScatter,
    kServers,
};

RunConfig run_of(const Kind& kind, int num_sites, int64_t base_steps = 6) {
  auto run = strategy_run(num_sites, 1, 0, 0, base_steps);
  run.strategy.kind = kind.strategy;
  run.strategy.bucket_bytes = kind.bucket_bytes;
  run.strategy.scatter = kind.scatter;
  run.sync.exchange = kind.exchange;
  run.sync.partition = kind.partition;
  for (int server = 0; server < std::min(kind.num_servers, num_sites); ++server) {
    run.sync.servers.push_back("s" + std::to_string(server));
    run.sites[static_cast<std::size_t>(server)].trains = !kind.serve_alone;
  }
  run.plan.equal_steps = true;
  run.outer.rounds = 3;
  run.data.sequence_length = 8;
  return run;
}

// The values after these steps of one device that has the sequences of all sites in each, in
// double.
std::vector<double> one_device(const FakeSites& sites, std::size_t size) {
  std::map<std::pair<int64_t, int64_t>, std::vector<int64_t>> steps;  // by round and step
  for (const auto& site : sites.sites) {
    for (const auto& step : site->training.steps) {
      auto& sequences = steps[{step.round, step.step}];
      sequences.insert(sequences.end(), step.sequences.begin(), step.sequences.end());
    }
  }
  const auto start = start_values(size);
  std::vector<double> values(start.begin(), start.end());
  for (const auto& [id, sequences] : steps) {
    for (std::size_t k = 0; k < size; ++k) {
      double sum = 0;
      for (const auto sequence : sequences) {
        sum += FakeTraining::gradient(values[k], k, sequence);
      }
      values[k] -= FakeTraining::kRate * sum / static_cast<double>(sequences.size());
    }
  }
  return values;
}

TEST_CASE("sites that step together follow one device with the whole batch") {
  for (const auto& kind : kKinds) {
    if (kind.serve_alone) continue;  // below
    for (const int num_sites : {1, 2, 3, 5}) {
      auto run = run_of(kind, num_sites);
      run.sites.front().batch = 7;  // the others have 4
      FakeSites sites(run, std::vector<double>(5, 0.5));
      REQUIRE(sites.run() == std::vector<bool>(run.sites.size(), true));
      const auto expected = one_device(sites, 11);
      const auto& first = sites[0];
      for (const auto& site : sites.sites) {
        INFO(name_of(kind.strategy) << " of " << num_sites << ", buckets of " << kind.bucket_bytes);
        CHECK(site->training.steps.size() == 18);
        CHECK(site->training.values == first.training.values);
        const auto global = site->strategy->theta_global();
        CHECK(std::vector<float>(global.begin(), global.end()) == site->training.values);
        for (std::size_t k = 0; k < expected.size(); ++k) {
          REQUIRE(site->training.values[k] == Approx(expected[k]).margin(1e-5));
        }
        const auto rounds = site->events<RoundEvent>();
        REQUIRE(rounds.size() == 3);
        CHECK(rounds.back().theta_hash == hash_of(first.strategy->theta_global()));
        const double all = 4.0 * num_sites + 3;
        CHECK(rounds.back().averaging_weight ==
              Approx((site->peers.view().self == 0 ? 7 : 4) / all));
      }
    }
  }
}

TEST_CASE("sites that serve alone let the others follow one device with the whole batch") {
  for (const int num_servers : {1, 2, 3}) {
    for (const int num_workers : {1, 2, 3}) {
      for (const auto partition :
           {outer_optimizer::PartitionRule::kBytes, outer_optimizer::PartitionRule::kLayer}) {
        INFO(num_servers << " servers of " << num_workers << ", " << name_of(partition));
        auto kind = kServers;
        kind.num_servers = num_servers;
        kind.partition = partition;
        const int num_sites = num_servers + num_workers;
        auto run = run_of(kind, num_sites);
        run.sites.back().batch = 7;  // the others have 4
        FakeSites sites(run, std::vector<double>(run.sites.size(), 0.5));
        REQUIRE(sites.run() == std::vector<bool>(run.sites.size(), true));
        const auto expected = one_device(sites, 11);
        const int64_t batches = 4 * (num_workers - 1) + 7;
        CHECK(sites[0].run.position.windows.pool().next() == 18 * batches);
        for (const auto& site : sites.sites) {
          CHECK(site->training.values == sites[0].training.values);
          for (std::size_t k = 0; k < expected.size(); ++k) {
            REQUIRE(site->training.values[k] == Approx(expected[k]).margin(1e-5));
          }
          const auto round = site->events<RoundEvent>().back();
          const int64_t batch = site->run.own_plan().batch;
          CHECK((batch == 0) == (site->peers.view().self < static_cast<std::size_t>(num_servers)));
          CHECK(round.tokens == 6 * batch * run.data.sequence_length);
          CHECK(round.averaging_weight ==
                Approx(static_cast<double>(batch) / static_cast<double>(batches)));
          CHECK(round.train_loss.has_value() == (batch > 0));
          CHECK(site->events<StepEvent>().size() == (batch > 0 ? 18 : 0));
          CHECK(site->validation.sequences.size() == 4);
        }
        // A server gets the gradient of its shard from each worker, and sends its mean to all.
        int64_t sent = 0;
        for (int server = 0; server < num_servers; ++server) {
          const auto& site = sites[static_cast<std::size_t>(server)];
          sent += site.events<RoundEvent>().back().wan_bytes_sent;
        }
        const int64_t marks = num_servers * (num_sites - 1);  // of the end of backward
        CHECK(sent == 6 * (4 * 11 * (num_sites - 1) + marks));
      }
    }
  }
}

// Runs until site 1 requests a stop before this step of round 2, and all sites have ended. A site
// leaves only when the others have the last step that it took: a real one saves its state first.
void run_to_stop(FakeSites& sites, int64_t step) {
  const auto num_sites = sites.sites.size();
  std::stop_source stop;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<int> begun(num_sites);  // steps, by site
  std::vector<bool> ended(num_sites);
  for (std::size_t site = 0; site < num_sites; ++site) {
    sites[site].training.before_step = [&, site](const StepOrder& order) {
      const std::lock_guard lock(mutex);
      ++begun[site];
      if (site == 1 && order.round == 2 && order.step == step) stop.request_stop();
      changed.notify_all();
    };
  }
  wan::run_ranks(static_cast<int>(num_sites), [&](int place) {
    const auto self = static_cast<std::size_t>(place);
    auto& site = sites[self];
    try {
      run_rounds(site.run, stop.get_token());
    } catch (const PeerError&) {  // another site has left first
    }
    site.strategy->settle();
    std::unique_lock lock(mutex);
    ended[self] = true;
    changed.notify_all();
    const auto own_steps = static_cast<int>(site.strategy->syncs_done());
    changed.wait(lock, [&] {
      for (std::size_t other = 0; other < num_sites; ++other) {
        if (!ended[other] && begun[other] <= own_steps) return false;
      }
      return true;
    });
    lock.unlock();
    sites.lose(site.peers.view().own_name());
    return 0;
  });
}

TEST_CASE("a stop leaves all sites at one step, from which the run goes on as if it had not") {
  for (const auto& kind : kKinds) {
    const auto run = run_of(kind, 3);
    FakeSites whole(run, {1, 0.5, 0.25});
    CHECK(whole.run() == std::vector<bool>(3, true));
    for (const int64_t step : {1, 4, 6}) {
      FakeSites first(run, {1, 0.5, 0.25});
      run_to_stop(first, step);
      FakeSites second(run, {1, 0.5, 0.25});
      for (std::size_t site = 0; site < 3; ++site) {
        INFO(name_of(kind.strategy) << " stopped in step " << step << ", site " << site);
        CHECK(first[site].strategy->syncs_done() == first[0].strategy->syncs_done());
        CHECK(first[site].training.values == first[0].training.values);
        first[site].checkpoints.begin(first[site].run);
        second[site].restore(first[site].checkpoints.saved);
      }
      CHECK(second.run() == std::vector<bool>(3, true));
      for (std::size_t site = 0; site < 3; ++site) {
        CHECK(second[site].training.values == whole[site].training.values);
        CHECK(second[site].strategy->state() == whole[site].strategy->state());
        CHECK(second[site].run.position.windows == whole[site].run.position.windows);
      }
    }
  }
}

TEST_CASE("a site that is lost in a step ends the others, at that step or the one before") {
  for (const auto& kind : kKinds) {
    FakeSites sites(run_of(kind, 3), {1, 1, 1});
    struct Death {};
    sites[1].training.before_step = [](const StepOrder& order) {
      if (order.round == 2 && order.step == 3) throw Death();
    };
    const auto messages = wan::run_ranks(3, [&](int place) -> std::string {
      try {
        run_rounds(sites[static_cast<std::size_t>(place)].run, {});
      } catch (const Death&) {
        sites.lose("s1");
        return "dead";
      } catch (const PeerError& error) {
        return error.site();
      }
      return "done";
    });
    CHECK(messages == std::vector<std::string>{"s1", "dead", "s1"});
    for (const std::size_t site : {0, 2}) {
      // The second step may not have reached all when the dead site's connections broke.
      const auto steps = sites[site].trainer.steps_done();
      CHECK((steps == 1 || steps == 2));
      CHECK(sites[site].strategy->syncs_done() == 6 + steps);
    }
  }
}

TEST_CASE("a step that fails at one site ends it there, and at the others with the loss") {
  FakeSites sites(run_of({}, 2), {1, 1});
  struct Failure {};
  std::promise<void> first_step;  // the other site's; its transport dies with this site
  sites[0].training.before_step = [&](const StepOrder& order) {
    if (order.step == 2) first_step.set_value();
  };
  // Another site's values are in the sum already, and it waits for this one's.
  sites[1].training.before_step = [&](const StepOrder& order) {
    if (order.step != 2) return;
    if (first_step.get_future().wait_for(std::chrono::seconds(60)) != std::future_status::ready) {
      throw std::runtime_error("the other site takes no second step");
    }
    auto* const sums = sites[1].strategy->gradients();
    sums->begin_step();
    sums->ready(0, 10, 11);
    sums->abandon();
    throw Failure();
  };
  const auto ends = wan::run_ranks(2, [&](int place) -> std::string {
    try {
      run_rounds(sites[static_cast<std::size_t>(place)].run, {});
    } catch (const Failure&) {
      sites.lose("s1");
      return "failed";
    } catch (const PeerError& error) {
      return error.site();
    }
    return "done";
  });
  CHECK(ends == std::vector<std::string>{"s1", "failed"});
  CHECK(sites[0].trainer.steps_done() == 1);
}

TEST_CASE("hybrid gives sites that step together unequal batches, and keeps their sum") {
  auto run = run_of({}, 4, 24);
  run.plan.policy = heterogeneity::Policy::kHybrid;
  run.plan.base_batch = 8;
  run.outer.rounds = 5;
  FakeSites sites(run, {1, 1, 1, 1});
  const std::vector<double> sequence_seconds{0.239, 0.25, 0.104, 0.201};
  for (std::size_t site = 0; site < 4; ++site) {
    sites[site].training.sequence_seconds = sequence_seconds[site];
  }
  REQUIRE(sites.run() == std::vector<bool>(4, true));
  double longest = 0, sum = 0;
  int64_t batches = 0;
  for (std::size_t site = 0; site < 4; ++site) {
    CHECK(sites[site].training.steps.size() == 120);
    CHECK(sites[site].training.values == sites[0].training.values);
    const auto& plan = sites[site].run.own_plan();
    CHECK(plan.local_steps == 24);
    batches += plan.batch;
    const double seconds = sequence_seconds[site] * static_cast<double>(plan.batch);
    longest = std::max(longest, seconds);
    sum += seconds;
  }
  CHECK(batches == 32);
  // Uniform batches leave 20.6 % of the time idle. Whole sequences cannot do better than this.
  CHECK(1 - sum / (4 * longest) < 0.08);
  const auto expected = one_device(sites, 11);
  for (std::size_t k = 0; k < expected.size(); ++k) {
    CHECK(sites[0].training.values[k] == Approx(expected[k]).margin(1e-5));
  }
}

TEST_CASE("the tokens of a measured first round are those that were trained") {
  for (const bool serve_alone : {false, true}) {
    auto kind = serve_alone ? kServers : Kind{};
    kind.num_servers = serve_alone ? 1 : 0;
    auto run = run_of(kind, 4, 24);
    run.plan.policy = heterogeneity::Policy::kHybrid;
    run.plan.base_batch = 8;
    FakeSites sites(run, {1, 1, 1, 1});
    const std::vector<double> sequence_seconds{0.1, 0.3, 0.1, 0.2};
    for (std::size_t site = 0; site < 4; ++site) {
      sites[site].training.sequence_seconds = sequence_seconds[site];
    }
    REQUIRE(sites.run() == std::vector<bool>(4, true));
    bool is_planned_anew = false;
    for (const auto& site : sites.sites) {
      std::map<int64_t, int64_t> trained;  // sequences, by round
      for (const auto& step : site->training.steps) {
        trained[step.round] += std::ssize(step.sequences);
      }
      const auto rounds = site->events<RoundEvent>();
      REQUIRE(rounds.size() == 3);
      for (const auto& round : rounds) {
        CHECK(round.tokens == trained[round.round] * run.data.sequence_length);
      }
      is_planned_anew = is_planned_anew || rounds.front().tokens !=
                                               24 * rounds.front().batch * run.data.sequence_length;
    }
    CHECK(is_planned_anew);
    CHECK(sites[0].training.values == sites[3].training.values);
  }
}

TEST_CASE("local SGD takes the plain mean of the models") {
  auto run = strategy_run(3, 1, 0, 0, 5);
  run.outer.rounds = 3;
  run.data.sequence_length = 8;
  run.outer.learning_rate = 0.3;  // not used
  run.outer.momentum = 0.8;
  run.strategy.kind = outer_optimizer::StrategyKind::kLocalSgd;
  FakeSites sites(run, {1, 1, 1});
  CHECK(sites.run() == std::vector<bool>(3, true));
  auto plain = run;
  plain.strategy.kind = outer_optimizer::StrategyKind::kLowCommunication;
  plain.outer.learning_rate = 1;
  plain.outer.momentum = 0;
  FakeSites low(plain, {1, 1, 1});
  CHECK(low.run() == std::vector<bool>(3, true));
  std::vector<double> mean;
  for (const auto value : start_values(11)) mean.push_back(value);
  for (int round = 0; round < 3; ++round) {
    std::vector<double> next(11);
    for (int site = 0; site < 3; ++site) {
      std::vector<float> local(mean.begin(), mean.end());
      for (int step = 0; step < 5; ++step) wander(local, site);
      for (std::size_t k = 0; k < 11; ++k) next[k] += double{local[k]} / 3;
    }
    mean = next;
  }
  for (std::size_t site = 0; site < 3; ++site) {
    CHECK(sites[site].training.values == low[site].training.values);
    for (std::size_t k = 0; k < 11; ++k) {
      CHECK(sites[site].training.values[k] == Approx(mean[k]).margin(1e-5));
    }
  }
}

}  // namespace
}  // namespace farstep
