// Sites that end in the middle of a round and go on from what a checkpoint keeps.
#include <barrier>
#include <stop_token>

#include "tests/support/catch.h"
#include "tests/trainer/strategy/replica.h"
#include "tests/wan/transport/run_ranks.h"

namespace farstep {
namespace {

RunConfig feedback_run() {
  auto run = strategy_run(2, 3, 2, 0.25, 12);
  run.sync.codec.kind = outer_optimizer::CodecKind::kInt8;
  run.sync.codec.block = 8;
  return run;
}

// How a run that is retuned syncs in a round.
void retune(Strategy& strategy, int64_t round) {
  auto sync = strategy.sync_config();
  sync.fragments = 2 + round;
  sync.delay_steps = round == 2 ? 1 : 2;
  sync.alpha = round == 2 ? 0 : 0.5;
  sync.codec = {
      .kind = round == 2 ? outer_optimizer::CodecKind::kInt4 : outer_optimizer::CodecKind::kInt8,
      .block = 4};
  strategy.retune(sync, std::vector<double>{1, static_cast<double>(round)});
}

int64_t steps_of_round(int site) {
  return 12 + 5 * site;
}

// What a checkpoint keeps of a site.
struct Saved {
  std::vector<float> theta, global, momentum;
  uint64_t checksum = 0;
  Json state;
  std::vector<std::pair<std::string, std::vector<std::byte>>> buffers;
  int64_t round = 1, steps_done = 0;
};

template <typename Replica>
Saved save(Replica& replica, int64_t round) {
  auto& strategy = replica.strategy;
  Saved saved{.theta = replica.theta,
              .global = {strategy.theta_global().begin(), strategy.theta_global().end()},
              .momentum = {strategy.outer_momentum().begin(), strategy.outer_momentum().end()},
              .checksum = strategy.committed_checksum(),
              .state = strategy.state(),
              .buffers = {},
              .round = round,
              .steps_done = replica.steps_done};
  for (const auto& buffer : strategy.own_buffers()) {
    saved.buffers.emplace_back(buffer.name,
                               std::vector<std::byte>(buffer.bytes.begin(), buffer.bytes.end()));
  }
  return saved;
}

template <typename Replica>
void load(Replica& replica, const Saved& saved) {
  auto& strategy = replica.strategy;
  replica.theta = saved.theta;
  replica.steps_done = saved.steps_done;
  std::ranges::copy(saved.global, strategy.theta_global().begin());
  std::ranges::copy(saved.momentum, strategy.outer_momentum().begin());
  strategy.restore(saved.state);
  const auto buffers = strategy.own_buffers();
  REQUIRE(buffers.size() == saved.buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    REQUIRE(buffers[i].name == saved.buffers[i].first);
    REQUIRE(buffers[i].bytes.size() == saved.buffers[i].second.size());
    std::ranges::copy(saved.buffers[i].second, buffers[i].bytes.begin());
  }
}

constexpr int64_t kRounds = 3;

// Where a site ends before its last round; all sites meet there first, as if all were told at once.
struct End {
  int64_t round = 0, step = 0;
  std::barrier<>* all = nullptr;
};

// Goes on from `from` as the training loop does, until kRounds rounds are done or until `end`.
template <typename Replica>
Saved train(Replica& replica, int site, const Saved& from, bool retunes, End end = {}) {
  std::stop_source told;
  for (int64_t round = from.round; round <= kRounds; ++round) {
    if (retunes && round > 1 && replica.steps_done == 0) retune(replica.strategy, round);
    replica.begin(round, steps_of_round(site));
    while (replica.steps_done < steps_of_round(site)) {
      const bool is_at_end = round == end.round && replica.steps_done == end.step;
      if (is_at_end) end.all->arrive_and_wait();
      if (is_at_end) told.request_stop();
      if (told.stop_requested()) {
        replica.strategy.settle();
        return save(replica, round);
      }
      replica.step([site](auto& theta) { wander(theta, site); });
    }
    // What the round's end begins may wait for a site that has ended.
    if (replica.end(told.get_token()).is_stopped) return save(replica, round);
    replica.steps_done = 0;
  }
  return save(replica, kRounds + 1);
}

// Ends the run everywhere in its second round, and compares what it becomes then.
template <typename Sites>
void check_resuming(const RunConfig& run, bool retunes) {
  const std::vector<float> start(29, 0.5F);
  Saved begin;
  begin.theta = start;
  Sites whole(run, start);
  const auto expected = wan::run_ranks(2, [&](int site) {
    return train(*whole.replicas[static_cast<std::size_t>(site)], site, begin, retunes);
  });
  int given_up = 0;
  for (int64_t end_step = 0; end_step <= 11; ++end_step) {
    // Of the second site, and no more than the shortest delay: the first would wait for it.
    for (int64_t lag = 0; lag <= (retunes ? 1 : 2); ++lag) {
      INFO("ends after " << end_step << " of 12 steps of round 2, lag " << lag);
      Sites first(run, start);
      std::barrier all(2);
      const auto saved = wan::run_ranks(2, [&](int site) {
        const int64_t even = end_step * steps_of_round(site) / steps_of_round(0);
        const int64_t own_step = std::max<int64_t>(0, even - lag * site);
        return train(*first.replicas[static_cast<std::size_t>(site)], site, begin, retunes,
                     {2, own_step, &all});
      });
      REQUIRE(saved[0].state["syncs_done"] == saved[1].state["syncs_done"]);
      REQUIRE(saved[0].checksum == saved[1].checksum);
      // Of eager sites one may keep a mean that the other has applied.
      if (run.strategy.kind != outer_optimizer::StrategyKind::kEagerUpdates)
        REQUIRE(saved[0].global == saved[1].global);
      given_up += saved[0].state["sent"].is_null() ? 0 : 1;
      Sites second(run, start);
      for (const std::size_t site : {0, 1}) load(*second.replicas[site], saved[site]);
      const auto found = wan::run_ranks(2, [&](int site) {
        const auto index = static_cast<std::size_t>(site);
        return train(*second.replicas[index], site, saved[index], retunes);
      });
      for (const std::size_t site : {0, 1}) {
        REQUIRE(found[site].theta == expected[site].theta);
        REQUIRE(found[site].global == expected[site].global);
        REQUIRE(found[site].momentum == expected[site].momentum);
        REQUIRE(found[site].buffers == expected[site].buffers);
        REQUIRE(found[site].state == expected[site].state);
      }
    }
  }
  CHECK(given_up > 0);  // so deltas were sent again
}

TEST_CASE("sites that end between any two steps go on as if they had not") {
  check_resuming<Sites>(feedback_run(), false);
}

TEST_CASE("sites whose syncs were changed go on as they were") {
  check_resuming<Sites>(feedback_run(), true);
}

TEST_CASE("eager sites that end between any two steps go on as if they had not") {
  auto run = feedback_run();
  run.sync.fragments = 1;
  run.sync.delay_steps = 0;
  run.sync.alpha = 0;
  run.strategy.kind = outer_optimizer::StrategyKind::kEagerUpdates;
  run.outer.rounds = kRounds;
  check_resuming<EagerSites>(run, false);
}

}  // namespace
}  // namespace farstep
