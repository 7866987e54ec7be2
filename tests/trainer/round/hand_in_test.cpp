// Sites that are asked to stop in the middle of a round, and hand in what they have.
#include <future>

#include "outer_optimizer/schedule/fragment_schedule.h"
#include "tests/trainer/round/mortal_sites.h"
#include "tests/trainer/round/trained_windows.h"

namespace farstep {
namespace {

constexpr int64_t kSteps = 12;  // of a round of mortal_sites.h

// The stop of one site.
struct Order {
  std::stop_source asked, gives_up;
  RoundStop stop() const { return {asked.get_token(), gives_up.get_token()}; }
};

// Asks a site to stop in this step, which is abandoned.
void ask_in(FakeSite& site, Order& order, int64_t round, int64_t step) {
  site.training.is_stopped_within = true;
  site.training.before_step = [=, &order](const StepOrder& now) {
    if (now.round == round && now.step == step) order.asked.request_stop();
  };
}

// Runs all sites, each with its own stop. A site that leaves is lost to the others.
std::vector<std::string> outcomes_of(FakeSites& sites, std::vector<Order>& orders) {
  return wan::run_ranks(static_cast<int>(sites.sites.size()), [&](int rank) {
    const auto site = static_cast<std::size_t>(rank);
    const auto outcome =
        outcome_of([&] { return run_rounds(sites[site].run, orders[site].stop()); });
    if (outcome == "stopped") sites.meeting.lose("s" + std::to_string(rank));
    return outcome;
  });
}

std::vector<SavedRun> saved_of(FakeSites& sites) {
  std::vector<SavedRun> saved;
  for (auto& site : sites.sites) {
    site->trainer.finish();
    site->checkpoints.begin(site->run);
    saved.push_back(site->checkpoints.saved);
  }
  return saved;
}

void restore(FakeSites& sites, const std::vector<SavedRun>& saved) {
  for (std::size_t site = 0; site < saved.size(); ++site) sites[site].restore(saved[site]);
}

std::vector<float> copy_of(std::span<float> values) {
  return {values.begin(), values.end()};
}

// Makes these steps the plan of each site.
RunConfig with_steps(RunConfig run, const std::vector<int64_t>& steps) {
  for (std::size_t site = 0; site < steps.size(); ++site) run.sites[site].local_steps = steps[site];
  return run;
}

TEST_CASE("what is handed in counts as if the site had planned just these steps") {
  // Each element trains for itself. So a fragment is a model of its own, whose sites did as many
  // steps as when its delta was taken.
  for (const int64_t fragments : {1, 2, 3}) {
    for (const int64_t delay_steps : {0, 1, 3}) {
      for (const int64_t done : {1, 5, 7, 11}) {
        INFO(fragments << " fragments, delay " << delay_steps << ", stopped after " << done);
        auto run = run_of(kPlainRounds, 3, 1);
        run.outer.averaging = outer_optimizer::AveragingRule::kTokens;
        run.sync.fragments = fragments;
        run.sync.delay_steps = delay_steps;
        run.sync.alpha = delay_steps > 0 ? 0.5 : 0;
        FakeSites sites(run, {1, 1, 1});
        sites.meeting.let_others_go_on();
        std::vector<Order> orders(3);
        ask_in(sites[1], orders[1], 1, done + 1);
        CHECK(outcomes_of(sites, orders) == std::vector<std::string>{"done", "stopped", "done"});
        CHECK(sites[1].run.position.rounds_done == 1);
        CHECK(sites[1].trainer.steps_done() == 0);
        CHECK(sites[1].training.steps.size() == static_cast<std::size_t>(done));
        const auto rounds = sites[1].events<RoundEvent>();
        REQUIRE(rounds.size() == 1);
        CHECK(rounds[0].local_steps == done);
        CHECK(rounds[0].averaging_weight > 0);
        const outer_optimizer::FragmentSchedule schedule(kSteps, fragments, delay_steps, kSteps);
        for (int64_t fragment = 0; fragment < fragments; ++fragment) {
          const int64_t sent = schedule.send_step(fragment);
          auto alone = run_of(kPlainRounds, 3, 1);
          alone.outer.averaging = run.outer.averaging;
          FakeSites planned(with_steps(alone, {sent, std::min(sent, done), sent}), {1, 1, 1});
          planned.run();
          const auto range = outer_optimizer::equal_part(11, static_cast<int>(fragment),
                                                         static_cast<int>(fragments));
          for (const auto& site : sites.sites) {
            auto& other = *planned[0].strategy;
            CHECK(std::ranges::equal(part(site->strategy->theta_global(), range),
                                     part(other.theta_global(), range)));
            CHECK(std::ranges::equal(part(site->strategy->outer_momentum(), range),
                                     part(other.outer_momentum(), range)));
          }
        }
      }
    }
  }
}

TEST_CASE("by a rule that counts no steps a part of a round has that part of the weight") {
  for (const auto rule :
       {outer_optimizer::AveragingRule::kBatch, outer_optimizer::AveragingRule::kUniform}) {
    for (const int64_t fragments : {1, 3}) {
      auto run = run_of(kPlainRounds, 3, 1);
      run.outer.averaging = rule;
      run.sync.fragments = fragments;
      FakeSites sites(run, {1, 1, 1});
      sites.meeting.let_others_go_on();
      std::vector<Order> orders(3);
      ask_in(sites[1], orders[1], 1, 6 + 1);
      CHECK(outcomes_of(sites, orders) == std::vector<std::string>{"done", "stopped", "done"});
      // Of the last fragment, whose delta was due after all twelve steps.
      CHECK(sites[1].events<RoundEvent>().back().averaging_weight == Approx(0.5 / 2.5));
      CHECK(sites[0].events<RoundEvent>().back().averaging_weight == Approx(1 / 2.5));
    }
  }
}

TEST_CASE("the others go on without the site that has handed in") {
  for (const auto& kind : {kPlainRounds, kHybridRounds, kDelayedRounds, kFragmentedRounds}) {
    for (const int64_t step : {2, 6, 12}) {
      FakeSites sites(run_of(kind, 3, 4), {1, 1, 0.5});
      sites.meeting.let_others_go_on();
      std::vector<Order> orders(3);
      ask_in(sites[1], orders[1], 2, step);
      sites[1].validation.is_due = false;  // or the stop would end it there
      CHECK(outcomes_of(sites, orders) == std::vector<std::string>{"done", "stopped", "done"});
      CHECK(
          std::ranges::equal(sites[0].strategy->theta_global(), sites[2].strategy->theta_global()));
      CHECK(sites[0].planner.state() == sites[2].planner.state());
      CHECK(sites[0].run.position.rounds_done == 4);
      // It leaves between two rounds, as the others were then.
      CHECK(sites[1].run.position.rounds_done == 2);
      const auto own = sites[1].events<RoundEvent>(), others = sites[0].events<RoundEvent>();
      REQUIRE(own.size() == 2);
      CHECK(own[1].local_steps == step - 1);
      CHECK(own[1].theta_hash == others[1].theta_hash);
      CHECK(sites[1].events<PlanEvent>().back().round == 2);  // no other round begins
      // What it has left of its range, the others have trained on; unless it had sent its last
      // delta before it was asked, as with a delay.
      const bool has_told = kind.delay_steps == 0 || step < 12;
      CHECK(are_windows_whole(sites, {{1, 2}}) == has_told);
    }
  }
}

TEST_CASE("with eager updates the others apply a round later what a site has handed in") {
  for (const int64_t stopped_round : {1, 2}) {
    auto run = run_of(kEagerRounds, 3, 4);
    run.outer.averaging = outer_optimizer::AveragingRule::kTokens;
    FakeSites sites(run, {1, 1, 1});
    sites.meeting.let_others_go_on();
    std::vector<Order> orders(3);
    ask_in(sites[1], orders[1], stopped_round, 5 + 1);
    CHECK(outcomes_of(sites, orders) == std::vector<std::string>{"done", "stopped", "done"});
    CHECK(std::ranges::equal(sites[0].strategy->theta_global(), sites[2].strategy->theta_global()));
    CHECK(sites[1].run.position.rounds_done == stopped_round);
    CHECK(sites[1].strategy->syncs_done() == stopped_round);
    const auto rounds = sites[0].events<RoundEvent>();
    REQUIRE(rounds.size() == 4);
    const auto weight = [&](int64_t round) {  // of the sync of the round before
      return rounds[static_cast<std::size_t>(round)].averaging_weight;
    };
    CHECK(weight(stopped_round) == Approx(kSteps / (2 * kSteps + 5.0)));
    if (stopped_round < 2) CHECK(weight(2) == Approx(0.5));
    CHECK(are_windows_whole(sites, {{1, stopped_round}}));
  }
}

TEST_CASE("with eager updates a delta that comes too late is kept for a resume") {
  const auto run = run_of(kEagerRounds, 2, 3);
  FakeSites sites(run, {1, 1});
  Order order;
  ask_in(sites[0], order, 1, 4);
  auto first =
      std::async(std::launch::async, [&] { return run_rounds(sites[0].run, order.stop()); });
  sites.meeting.wait_for_arrival(0, {.round = 1, .fragment = 0});  // the second never comes
  order.gives_up.request_stop();
  CHECK_FALSE(first.get());
  CHECK(sites[0].run.position.rounds_done == 1);
  CHECK(sites[0].events<RoundEvent>().back().local_steps == 3);
  CHECK(sites[0].strategy->syncs_done() == 0);
  // The second stops between two rounds.
  Order other;
  sites[1].training.before_step = [&](const StepOrder& now) {
    if (now.round == 1 && now.step == kSteps) other.asked.request_stop();
  };
  CHECK_FALSE(run_rounds(sites[1].run, RoundStop(other.asked.get_token())));
  const auto saved = saved_of(sites);
  FakeSites resumed(run, {1, 1});
  restore(resumed, saved);
  CHECK(resumed.run() == std::vector<bool>(2, true));
  CHECK(
      std::ranges::equal(resumed[0].strategy->theta_global(), resumed[1].strategy->theta_global()));
}

TEST_CASE("all hand in at once, and go on together from between two rounds") {
  for (const auto& kind : {kPlainRounds, kFragmentedRounds, kDelayedRounds}) {
    auto run = run_of(kind, 3, 3);
    run.plan.policy = heterogeneity::Policy::kUniform;
    run.outer.averaging = outer_optimizer::AveragingRule::kTokens;
    run.outer.mean_rounds = 0;  // shorter runs below take the same steps
    const std::vector<int64_t> done{5, 3, 11};
    FakeSites stopped(run, {1, 1, 1});
    std::vector<Order> orders(3);
    for (const std::size_t site : {0, 1, 2}) ask_in(stopped[site], orders[site], 2, done[site] + 1);
    const auto outcomes = wan::run_ranks(3, [&](int site) {
      const auto place = static_cast<std::size_t>(site);
      return static_cast<int>(run_rounds(stopped[place].run, orders[place].stop()));
    });
    CHECK(outcomes == std::vector<int>(3, 0));
    const auto saved = saved_of(stopped);
    for (const auto& one : saved) {
      CHECK(one.position.rounds_done == 2);
      CHECK(one.steps == 0);
      CHECK(one.global == saved[0].global);
      const auto& pool = one.position.windows.pool();
      int64_t trained = pool.next();
      for (const auto& range : pool.returned()) trained -= range.size();
      // With a delay the third had sent its last delta before, and its whole range counts.
      const int64_t third = kind.delay_steps > 0 ? kSteps : done[2];
      CHECK(trained == (3 * kSteps + done[0] + done[1] + third) * run.plan.base_batch);
    }
    FakeSites resumed(run, {1, 1, 1});
    restore(resumed, saved);
    CHECK(resumed.run() == std::vector<bool>(3, true));
    if (kind.fragments > 1) continue;  // those of a plan of fewer steps are sent at other ones

    auto one_round = run;
    one_round.outer.rounds = 1;
    FakeSites first(one_round, {1, 1, 1});
    first.run();
    auto two_rounds = with_steps(run, done);
    two_rounds.outer.rounds = 2;
    FakeSites second(two_rounds, {1, 1, 1});
    restore(second, saved_of(first));
    second.run();
    FakeSites third(run, {1, 1, 1});
    restore(third, saved_of(second));
    third.run();
    for (const std::size_t site : {0, 1, 2}) {
      CHECK(resumed[site].training.values == third[site].training.values);
      CHECK(copy_of(resumed[site].strategy->outer_momentum()) ==
            copy_of(third[site].strategy->outer_momentum()));
    }
  }
}

TEST_CASE("a site whose time runs out leaves in the middle of the round and loses no step") {
  for (const auto& kind : {kPlainRounds, kFragmentedRounds, kDelayedRounds}) {
    auto run = run_of(kind, 2, 2);
    run.plan.policy = heterogeneity::Policy::kUniform;
    FakeSites whole(run, {1, 1});
    whole.run();
    FakeSites sites(run, {1, 1});
    Order order;
    ask_in(sites[0], order, 1, 4);  // before any fragment is due
    auto first =
        std::async(std::launch::async, [&] { return run_rounds(sites[0].run, order.stop()); });
    sites.meeting.wait_for_arrival(0, {.round = 1, .fragment = 0});  // the second never comes
    order.gives_up.request_stop();
    CHECK_FALSE(first.get());
    CHECK(sites[0].trainer.steps_done() == 3);
    CHECK(sites[0].run.position.rounds_done == 0);
    CHECK(sites[0].strategy->syncs_done() == 0);
    const auto saved = saved_of(sites);
    FakeSites resumed(run, {1, 1});
    restore(resumed, saved);
    CHECK(resumed.run() == std::vector<bool>(2, true));
    CHECK(copy_of(resumed[0].strategy->theta_global()) ==
          copy_of(resumed[1].strategy->theta_global()));
    // With a delay the delta was taken, and is sent as it was.
    if (kind.delay_steps > 0) continue;
    CHECK(resumed[0].training.values == whole[0].training.values);
  }
}

TEST_CASE("a site that cannot hand in leaves at once") {
  struct Case {
    RoundKind kind;
    int64_t round, step;
  };
  for (const auto& [kind, round, step] : std::vector<Case>{{kPlainRounds, 2, 1},
                                                           {kDelayedRounds, 1, 1},
                                                           {kEagerRounds, 2, 1},
                                                           {kHybridRounds, 1, 3}}) {  // is measured
    FakeSites sites(run_of(kind, 2, 3), {1, 1});
    sites.meeting.let_others_go_on();
    std::vector<Order> orders(2);
    ask_in(sites[1], orders[1], round, step);
    CHECK(outcomes_of(sites, orders) == std::vector<std::string>{"done", "stopped"});
    CHECK(sites[1].run.position.rounds_done == round - 1);
    CHECK(sites[1].trainer.steps_done() == step - 1);
    if (kind.strategy == kEagerRounds.strategy) continue;  // its sync may have begun or not
    CHECK(sites[1].strategy->syncs_done() == (round - 1) * kind.fragments);
  }
}

TEST_CASE("a site without time to hand in leaves before the sync") {
  FakeSites sites(run_of(kPlainRounds, 2, 2), {1, 1});
  sites.meeting.let_others_go_on();
  std::vector<Order> orders(2);
  ask_in(sites[1], orders[1], 1, 6);
  orders[1].gives_up = orders[1].asked;
  CHECK(outcomes_of(sites, orders) == std::vector<std::string>{"done", "stopped"});
  CHECK(sites[1].trainer.steps_done() == 5);
  CHECK(sites[1].run.position.rounds_done == 0);
}

TEST_CASE("a stop in the wait for the sync leaves the round as it is") {
  FakeSites sites(run_of(kPlainRounds, 2, 2), {1, 1});
  sites.meeting.let_others_go_on();
  Order order;
  auto first =
      std::async(std::launch::async, [&] { return run_rounds(sites[0].run, order.stop()); });
  sites.meeting.wait_for_arrival(0, {.round = 1, .fragment = 0});
  order.asked.request_stop();
  auto second = std::async(std::launch::async, [&] { return run_rounds(sites[1].run, {}); });
  CHECK_FALSE(first.get());
  sites.meeting.lose("s0");
  CHECK(second.get());
  CHECK(sites[0].run.position.rounds_done == 1);
  CHECK(sites[0].events<RoundEvent>().back().local_steps == kSteps);
}

TEST_CASE("a site hands in a round that ends by its deadline") {
  auto run = run_of(kHybridRounds, 3, 4);
  run.plan.round_end = heterogeneity::RoundEnd::kDeadline;
  FakeSites sites(run, {1, 0.5, 1});
  sites.meeting.let_others_go_on();
  std::vector<Order> orders(3);
  ask_in(sites[2], orders[2], 3, 4);
  CHECK(outcomes_of(sites, orders) == std::vector<std::string>{"done", "done", "stopped"});
  CHECK(sites[2].run.position.rounds_done == 3);
  CHECK(sites[2].events<RoundEvent>().back().local_steps == 3);
}

TEST_CASE("a site on a GPU hands in the step that it was given too") {
  FakeSites sites(run_of(kPlainRounds, 2, 1), {1, 1});
  std::vector<Order> orders(2);
  for (auto& site : sites.sites) site->training.is_late = true;
  ask_in(sites[1], orders[1], 1, 6);
  CHECK(outcomes_of(sites, orders) == std::vector<std::string>{"done", "stopped"});
  const auto rounds = sites[1].events<RoundEvent>();
  REQUIRE(rounds.size() == 1);
  CHECK(rounds[0].local_steps == 5);
  CHECK(rounds[0].train_loss == Approx(3));  // of steps whose losses are 1 to 5
}

}  // namespace
}  // namespace farstep
