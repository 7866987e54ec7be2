// Rounds that lose a site and go on with the others.
#include <set>

#include "tests/support/catch.h"
#include "tests/trainer/round/fake_sites.h"
#include "trainer/base/error.h"

namespace farstep {
namespace {

struct Death {};

struct Kind {
  int64_t fragments, delay_steps;
  double alpha;
  bool eager;
  CodecKind codec;
  Policy policy;
};

const std::vector<Kind> kKinds = {
    {1, 0, 0, false, CodecKind::kFp32, Policy::kUniform},
    {1, 0, 0, false, CodecKind::kInt8, Policy::kHybrid},
    {3, 2, 0.5, false, CodecKind::kInt8, Policy::kUniform},
    {3, 0, 0, false, CodecKind::kFp32, Policy::kHybrid},
    {1, 0, 0, true, CodecKind::kInt8, Policy::kUniform},
};

RunConfig run_of(const Kind& kind, int num_sites) {
  auto run = strategy_run(num_sites, kind.fragments, kind.delay_steps, kind.alpha, 12);
  if (kind.eager) run.strategy.kind = StrategyKind::kEagerUpdates;
  run.sync.codec.kind = kind.codec;
  run.outer.rounds = 4;
  run.plan.policy = kind.policy;
  return run;
}

// Makes a site die before this step of this round.
void let_die(FakeSites& sites, std::size_t victim, int64_t round, int64_t step) {
  sites.meeting.let_others_go_on();
  sites[victim].training.before_step = [&sites, victim, round, step](const StepOrder& order) {
    if (order.round < round || (order.round == round && order.step < step)) return;
    sites.lose("s" + std::to_string(victim));
    throw Death();
  };
}

// Returns what became of each site.
std::vector<std::string> outcomes_of(FakeSites& sites) {
  return run_ranks(static_cast<int>(sites.sites.size()), [&](int site) -> std::string {
    try {
      return run_rounds(sites[static_cast<std::size_t>(site)].run, {}) ? "done" : "stopped";
    } catch (const Death&) {
      return "died";
    } catch (const std::exception& error) {
      return error.what();
    }
  });
}

TEST_CASE("the sites that are left go on together, and lose none of their steps") {
  for (const auto& kind : kKinds) {
    for (const int64_t step : {1, 6, 12}) {
      FakeSites sites(run_of(kind, 3), {1, 0.5, 1});
      let_die(sites, 1, 2, step);
      CHECK(outcomes_of(sites) == std::vector<std::string>{"done", "died", "done"});
      CHECK(
          std::ranges::equal(sites[0].strategy->theta_global(), sites[2].strategy->theta_global()));
      CHECK(sites[0].planner.state() == sites[2].planner.state());
      for (const std::size_t site : {0, 2}) {
        CHECK(sites[site].run.position.rounds_done == 4);
        CHECK(sites[site].peers.view().members == std::vector<std::string>{"s0", "s2"});
        std::set<std::pair<int64_t, int64_t>> steps;
        for (const auto& event : sites[site].events<StepEvent>()) {
          CHECK(steps.emplace(event.round, event.step).second);
        }
        // No two steps of any site trained on the same window.
        CHECK(sites[site].training.sequences.size() == steps.size());
      }
      std::set<int64_t> windows;
      std::size_t trained = 0;
      for (const auto& site : sites.sites) {
        for (const auto& [begin, end] : site->training.sequences) {
          for (int64_t window = begin; window < end; ++window, ++trained) windows.insert(window);
        }
      }
      CHECK(windows.size() == trained);
    }
  }
}

TEST_CASE("after a loss the others train as if they had been alone from there") {
  const Kind plain = {1, 0, 0, false, CodecKind::kFp32, Policy::kUniform};
  auto first_round = run_of(plain, 3);
  first_round.outer.rounds = 1;
  FakeSites before(first_round, {1, 1, 1});
  before.run();
  FakeSites pair(run_of(plain, 2), {1, 1});
  for (const std::size_t site : {0, 1}) pair[site].restore(before[site].checkpoints.saved);
  pair.run();

  FakeSites sites(run_of(plain, 3), {1, 1, 1});
  let_die(sites, 2, 2, 5);
  CHECK(outcomes_of(sites) == std::vector<std::string>{"done", "done", "died"});
  for (const std::size_t site : {0, 1}) {
    CHECK(sites[site].training.values == pair[site].training.values);
    CHECK(std::ranges::equal(sites[site].strategy->outer_momentum(),
                             pair[site].strategy->outer_momentum()));
  }
}

TEST_CASE("sites are lost one after the other until one is left") {
  FakeSites sites(run_of(kKinds[2], 4), {1, 1, 1, 1});
  let_die(sites, 0, 1, 4);
  let_die(sites, 3, 2, 4);
  let_die(sites, 1, 3, 4);
  CHECK(outcomes_of(sites) == std::vector<std::string>{"died", "died", "done", "died"});
  CHECK(sites[2].run.position.rounds_done == 4);
  CHECK(sites[2].peers.view().members == std::vector<std::string>{"s2"});
}

TEST_CASE("a site that is lost while the sites are measured is planned without") {
  auto run = run_of(kKinds[1], 3);
  FakeSites sites(run, {1, 0.5, 0.25});
  let_die(sites, 0, 1, 3);  // of four measuring steps
  CHECK(outcomes_of(sites) == std::vector<std::string>{"died", "done", "done"});
  CHECK(std::ranges::equal(sites[1].strategy->theta_global(), sites[2].strategy->theta_global()));
  // Twice as fast, twice as many steps.
  CHECK(sites[1].run.plan().sites[1].local_steps == 2 * sites[1].run.plan().sites[0].local_steps);
}

}  // namespace
}  // namespace farstep
