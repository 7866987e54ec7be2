// Rounds that are stopped, or lose a peer, and go on from a checkpoint.
#include <atomic>

#include "tests/support/catch.h"
#include "tests/trainer/round/fake_sites.h"
#include "trainer/base/error.h"

namespace farstep {
namespace {

struct InterruptedRun {
  int64_t fragments, delay_steps;
  double alpha;
  bool eager;
  heterogeneity::Policy policy;
  heterogeneity::RoundEnd round_end = heterogeneity::RoundEnd::kSteps;
};

RunConfig run_of(const InterruptedRun& kind) {
  auto run = strategy_run(2, kind.fragments, kind.delay_steps, kind.alpha, 12);
  if (kind.eager) run.strategy.kind = outer_optimizer::StrategyKind::kEagerUpdates;
  run.sync.codec.kind = outer_optimizer::CodecKind::kInt8;
  run.outer.rounds = 3;
  run.plan.policy = kind.policy;
  run.plan.round_end = kind.round_end;
  return run;
}

const std::vector<InterruptedRun> kInterruptedRuns{
    {1, 0, 0, false, heterogeneity::Policy::kUniform},
    {3, 2, 0.25, false, heterogeneity::Policy::kUniform},
    {1, 0, 0, true, heterogeneity::Policy::kUniform},
    {2, 1, 0, false, heterogeneity::Policy::kHybrid},
    {1, 0, 0, false, heterogeneity::Policy::kHybrid, heterogeneity::RoundEnd::kDeadline},
    {1, 0, 0, true, heterogeneity::Policy::kHybrid, heterogeneity::RoundEnd::kDeadline}};

// Runs until both sites have stopped after step `step` of round `round`, or within it, then saves
// them.
std::vector<SavedRun> stop_at(FakeSites& sites, int64_t round, int64_t step, bool within) {
  std::stop_source stop;
  for (auto& site : sites.sites) {
    site->training.is_stopped_within = within;
    site->training.before_step = [&, round, step](const StepOrder& order) {
      if (order.round == round && order.step >= step) stop.request_stop();
    };
  }
  CHECK(sites.run(stop.get_token()) == std::vector<bool>(2, false));
  std::vector<SavedRun> saved;
  for (auto& site : sites.sites) {
    site->trainer.finish();
    site->checkpoints.begin(site->run);
    saved.push_back(site->checkpoints.saved);
  }
  return saved;
}

TEST_CASE("a run that was stopped goes on as if it had not") {
  for (const auto& kind : kInterruptedRuns) {
    const auto run = run_of(kind);
    FakeSites whole(run, {1, 0.5});
    CHECK(whole.run() == std::vector<bool>(2, true));
    for (const auto& [step, within] : std::vector<std::pair<int64_t, bool>>{
             {1, false}, {5, false}, {12, false}, {1, true}, {5, true}, {12, true}}) {
      INFO("stopped in step " << step << (within ? ", which is abandoned" : ""));
      FakeSites first(run, {1, 0.5});
      const auto saved = stop_at(first, 2, step, within);
      // Eager sites meet a round later, and may be a round apart until then.
      REQUIRE(saved[0].strategy["syncs_done"] == saved[1].strategy["syncs_done"]);
      FakeSites second(run, {1, 0.5});
      for (const std::size_t site : {0, 1}) second[site].restore(saved[site]);
      CHECK(second.run() == std::vector<bool>(2, true));
      for (const std::size_t site : {0, 1}) {
        CHECK(second[site].training.values == whole[site].training.values);
        CHECK(second[site].planner.state() == whole[site].planner.state());
        CHECK(second[site].strategy->state() == whole[site].strategy->state());
        CHECK(second[site].run.position.windows == whole[site].run.position.windows);
        auto steps = first[site].training.steps;
        const auto& rest = second[site].training.steps;
        steps.insert(steps.end(), rest.begin(), rest.end());
        CHECK(steps == whole[site].training.steps);
      }
    }
  }
}

TEST_CASE("a validation that was stopped is made up for, and the run goes on as if it had not") {
  const auto run = run_of(kInterruptedRuns.front());
  FakeSites whole(run, {1, 1});
  CHECK(whole.run() == std::vector<bool>(2, true));
  for (int64_t rounds_done = 0; rounds_done <= run.outer.rounds; ++rounds_done) {
    FakeSites first(run, {1, 1});
    std::stop_source stop;
    for (auto& site : first.sites) {
      site->validation.before_validation = [&](int64_t now) {
        if (now == rounds_done) stop.request_stop();
      };
    }
    CHECK(first.run(stop.get_token()) == std::vector<bool>(2, false));
    FakeSites second(run, {1, 1});
    for (const std::size_t site : {0, 1}) {
      first[site].checkpoints.begin(first[site].run);
      second[site].restore(first[site].checkpoints.saved);
    }
    CHECK(second.run() == std::vector<bool>(2, true));
    for (const std::size_t site : {0, 1}) {
      auto validated = first[site].validation.sequences;
      const auto& rest = second[site].validation.sequences;
      validated.insert(validated.end(), rest.begin(), rest.end());
      CHECK(validated == whole[site].validation.sequences);
      CHECK(second[site].training.values == whole[site].training.values);
    }
  }
}

TEST_CASE("a lost peer ends the round with its name and costs no step") {
  for (const auto& kind : kInterruptedRuns) {
    const auto run = run_of(kind);
    FakeSites sites(run, {1, 1});
    // The second site dies before its seventh step of the second round.
    struct Death {};
    sites[1].training.before_step = [&](const StepOrder& order) {
      if (order.round < 2 || order.step < 7) return;
      sites.lose("s1");
      throw Death();
    };
    const auto outcomes = wan::run_ranks(2, [&](int site) -> std::string {
      try {
        run_rounds(sites[static_cast<std::size_t>(site)].run, {});
      } catch (const PeerError& error) {
        return error.what();
      } catch (const Death&) {
        return "died";
      }
      return "done";
    });
    CHECK(outcomes == std::vector<std::string>{"site s1 is gone", "died"});
    auto& survivor = sites[0];
    // Eager sites meet a round later, and may be a round apart until then.
    const int64_t rounds_done = survivor.run.position.rounds_done;
    CHECK(rounds_done >= (kind.eager ? 0 : 1));
    CHECK(rounds_done <= (kind.eager ? 2 : 1));
    const auto steps = survivor.events<StepEvent>();
    CHECK(
        survivor.trainer.steps_done() ==
        std::ranges::count(steps, rounds_done + 1, [](const auto& event) { return event.round; }));
    survivor.checkpoints.begin(survivor.run);  // no sync is under way
    CHECK(survivor.checkpoints.saved.theta == survivor.training.values);
  }
}

TEST_CASE("a site that waits at the sync stops when it is asked to") {
  auto run = run_of(kInterruptedRuns.front());
  FakeSites sites(run, {1, 1});
  std::stop_source stop;
  auto first =
      std::async(std::launch::async, [&] { return run_rounds(sites[0].run, stop.get_token()); });
  sites.meeting.wait_for_arrival(0, {.round = 1, .fragment = 0});  // the second never comes
  stop.request_stop();
  CHECK_FALSE(first.get());
  CHECK(sites[0].trainer.steps_done() == 12);
  CHECK(sites[0].peers.activity == "at the sync");
}

}  // namespace
}  // namespace farstep
