// Rounds that lose a site and take it back.
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
  CodecKind codec;
  Policy policy;
};

RunConfig run_of(const Kind& kind, int num_sites) {
  auto run = strategy_run(num_sites, kind.fragments, kind.delay_steps, kind.alpha, 12);
  run.sync.codec.kind = kind.codec;
  run.outer.rounds = 10;
  run.plan.policy = kind.policy;
  return run;
}

// Runs a site as a process would that is started again: it takes the state and joins. Returns what
// became of it.
std::string come_back(FakeSites& sites, std::size_t site) {
  sites.renew(site);
  auto& run = sites[site].run;
  const auto state = sites.handed.take("s" + std::to_string(site));
  std::ranges::copy(state.global, run.strategy.theta_global().begin());
  std::ranges::copy(state.momentum, run.strategy.outer_momentum().begin());
  take_shared_state(run, state.shared);
  if (!attend_round(run, state.shared, {})) return "stopped";
  return run_rounds(run, {}) ? "done" : "stopped";
}

// Runs all sites; the victim dies before a step of round 2, and comes back.
std::vector<std::string> outcomes_of(FakeSites& sites, std::size_t victim) {
  sites.meeting.let_others_go_on();
  sites[victim].training.before_step = [&sites, victim](const StepOrder& order) {
    if (order.round < 2 || order.step < 5) return;
    sites.lose("s" + std::to_string(victim));
    sites.meeting.let_join(static_cast<int>(victim));
    throw Death();
  };
  return run_ranks(static_cast<int>(sites.sites.size()), [&](int site) -> std::string {
    const auto own = static_cast<std::size_t>(site);
    try {
      return run_rounds(sites[own].run, {}) ? "done" : "stopped";
    } catch (const Death&) {
    } catch (const std::exception& error) {
      return error.what();
    }
    try {
      return come_back(sites, own);
    } catch (const std::exception& error) {
      return error.what();
    }
  });
}

TEST_CASE("a site that comes back has the others' state, and trains with them to the end") {
  for (const auto& kind : std::vector<Kind>{{1, 0, 0, CodecKind::kFp32, Policy::kUniform},
                                            {1, 0, 0, CodecKind::kInt8, Policy::kHybrid},
                                            {3, 2, 0.5, CodecKind::kInt8, Policy::kUniform},
                                            {3, 0, 0, CodecKind::kFp32, Policy::kHybrid}}) {
    for (const std::size_t victim : {1, 0}) {
      FakeSites sites(run_of(kind, 3), {1, 0.5, 1});
      CHECK(outcomes_of(sites, victim) == std::vector<std::string>(3, "done"));
      for (const auto& site : sites.sites) {
        CHECK(site->run.position.rounds_done == 10);
        CHECK(site->peers.view().members == std::vector<std::string>{"s0", "s1", "s2"});
        CHECK(
            std::ranges::equal(site->strategy->theta_global(), sites[2].strategy->theta_global()));
        CHECK(std::ranges::equal(site->strategy->outer_momentum(),
                                 sites[2].strategy->outer_momentum()));
        CHECK(site->planner.state() == sites[2].planner.state());
        CHECK(site->run.position.data.run_sequences == sites[2].run.position.data.run_sequences);
      }
      // It trained again, on windows that nobody else had, and its deltas counted.
      std::set<int64_t> windows;
      std::size_t trained = 0;
      for (const auto& site : sites.sites) {
        for (const auto& [begin, end] : site->training.sequences) {
          for (int64_t window = begin; window < end; ++window, ++trained) windows.insert(window);
        }
      }
      CHECK(windows.size() == trained);
      CHECK_FALSE(sites[victim].training.sequences.empty());
      // It was away for two rounds, attended the next, and worked in all others.
      CHECK(sites[victim].events<RoundEvent>().size() >= 6);
      // All tell the same of its return, and those who stayed of its loss.
      const auto back = sites[victim].events<ViewEvent>();
      const auto seen = sites[2].events<ViewEvent>();
      REQUIRE(back.size() == 1);
      REQUIRE(seen.size() == 2);
      const auto name = "s" + std::to_string(victim);
      CHECK(seen[0].lost == name);
      CHECK(seen[0].round == 2);
      CHECK(seen[0].members.size() == 2);
      for (const auto& joined : {back[0], seen[1]}) {
        CHECK(joined.joined == name);
        CHECK(joined.members.size() == 3);
        CHECK(joined.generation == seen[1].generation);
        CHECK(joined.round == seen[1].round);
        CHECK(joined.round + 1 == sites[victim].events<RoundEvent>().front().round);
      }
    }
  }
}

}  // namespace
}  // namespace farstep
