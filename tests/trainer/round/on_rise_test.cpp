// What becomes of a run whose validation loss rises.
#include "tests/support/catch.h"
#include "tests/trainer/round/fake_sites.h"
#include "trainer/base/error.h"

namespace farstep {
namespace {

struct RisingKind {
  outer_optimizer::StrategyKind strategy = outer_optimizer::StrategyKind::kLowCommunication;
  int64_t fragments = 1, delay_steps = 0;
  outer_optimizer::CodecKind codec = outer_optimizer::CodecKind::kFp32;
};

const std::vector<RisingKind> kRisingKinds{
    {},
    {.fragments = 3},
    {.fragments = 2, .delay_steps = 1},
    {.codec = outer_optimizer::CodecKind::kTopK},
    {.strategy = outer_optimizer::StrategyKind::kEagerUpdates},
    {.strategy = outer_optimizer::StrategyKind::kRingAllReduce},
};

RunConfig rising_run(const RisingKind& kind, OnRise on_rise, int num_sites = 2) {
  auto run = strategy_run(num_sites, kind.fragments, kind.delay_steps, 0, 6);
  run.strategy.kind = kind.strategy;
  run.strategy.bucket_bytes = 1 << 20;
  run.sync.codec.kind = kind.codec;
  run.outer.rounds = 9;
  run.data.sequence_length = 8;
  run.evaluate.on_rise = on_rise;
  return run;
}

// Lets the sites validate after each round, with these losses; of later rounds it is the last one.
void validate_with(FakeSites& sites, const std::vector<double>& losses) {
  for (auto& site : sites.sites) {
    site->validation.evaluate = [losses](Run& run) {
      const int64_t round = run.position.rounds_done;
      const auto place = std::min(static_cast<std::size_t>(round), losses.size() - 1);
      run.position.own_validation = {.round = round, .loss_sum = 10 * losses[place], .targets = 10};
    };
  }
}

// Returns the exit code that each site's end stands for.
std::vector<int> exit_codes(FakeSites& sites) {
  return wan::run_ranks(static_cast<int>(sites.sites.size()), [&](int site) {
    try {
      return run_rounds(sites[static_cast<std::size_t>(site)].run, {}) ? 0 : 130;
    } catch (const DivergenceError&) {
      return 5;
    } catch (const StaleStateError&) {
      return 3;
    }
  });
}

// An eager sync brings what its sites knew before the round in which it is exchanged.
int64_t judged_after(const RisingKind& kind, int64_t validated_round) {
  return validated_round + (kind.strategy == outer_optimizer::StrategyKind::kEagerUpdates ? 2 : 1);
}

TEST_CASE("all sites go back to the weights before a rise, and train on alike") {
  for (const auto& kind : kRisingKinds) {
    CAPTURE(kind.strategy, kind.fragments, kind.codec);
    FakeSites sites(rising_run(kind, OnRise::kGoBack), {1, 1});
    validate_with(sites, {4, 4, 4, 6, 4});
    CHECK(exit_codes(sites) == std::vector<int>{0, 0});
    const int64_t judged = judged_after(kind, 3);
    for (auto& site : sites.sites) {
      const auto rises = site->events<RiseEvent>();
      REQUIRE(rises.size() == 1);
      CHECK(rises[0].validated_round == 3);
      CHECK(rises[0].round == judged);
      CHECK(rises[0].back_to_round == 2);
      CHECK(site->training.times_anew == 1);
      auto& kept = site->checkpoints.by_round;
      CHECK(kept.at(judged).global == kept.at(2).global);
      CHECK(kept.at(judged).momentum == kept.at(2).momentum);
      CHECK(kept.at(judged).theta == kept.at(2).global);
      CHECK(kept.at(judged - 1).global != kept.at(2).global);
      CHECK(kept.at(judged + 1).global != kept.at(2).global);
      // The data of the dropped rounds does not come again.
      CHECK(kept.at(judged).position.windows.pool().next() >
            kept.at(2).position.windows.pool().next());
      const auto rounds = site->events<RoundEvent>();
      REQUIRE(rounds.size() == 9);
      CHECK(rounds.back().theta_hash == sites[0].events<RoundEvent>().back().theta_hash);
    }
  }
}

TEST_CASE("after going back a round is that which a fresh site would begin with these weights") {
  // No momentum and no residual, one site: a round then is a function of the weights alone.
  auto config = rising_run({}, OnRise::kGoBack, 1);
  FakeSites went_back(config, {1});
  validate_with(went_back, {4, 4, 4, 6, 4});
  CHECK(exit_codes(went_back) == std::vector<int>{0});
  auto& kept = went_back[0].checkpoints.by_round;
  FakeSites fresh(config, {1});
  auto restored = kept.at(2);
  restored.strategy = kept.at(4).strategy;
  restored.planner = kept.at(4).planner;
  restored.position = kept.at(4).position;
  fresh[0].restore(restored);
  CHECK(exit_codes(fresh) == std::vector<int>{0});
  CHECK(fresh[0].checkpoints.by_round.at(9).global == kept.at(9).global);
}

TEST_CASE("a rise that comes again stops the run, and all sites with it") {
  for (const auto& kind : kRisingKinds) {
    CAPTURE(kind.strategy, kind.fragments);
    FakeSites sites(rising_run(kind, OnRise::kGoBack), {1, 1});
    validate_with(sites, {4, 4, 4, 6});
    CHECK(exit_codes(sites) == std::vector<int>{5, 5});
    for (auto& site : sites.sites) {
      const auto rises = site->events<RiseEvent>();
      REQUIRE(rises.size() == 2);
      CHECK_FALSE(rises[0].stops);
      CHECK(rises[1].stops);
      CHECK(site->training.times_anew == 1);
    }
  }
}

TEST_CASE("a rise stops the run or is only told, as the run file says") {
  FakeSites stopped(rising_run({}, OnRise::kStop), {1, 1});
  validate_with(stopped, {4, 4, 4, 6});
  CHECK(exit_codes(stopped) == std::vector<int>{5, 5});
  CHECK(stopped[0].run.position.rounds_done == 4);
  CHECK(stopped[0].checkpoints.rounds.back() == 3);

  FakeSites warned(rising_run({}, OnRise::kWarn), {1, 1});
  validate_with(warned, {4, 4, 4, 6, 4});
  CHECK(exit_codes(warned) == std::vector<int>{0, 0});
  const auto rises = warned[1].events<RiseEvent>();
  REQUIRE(rises.size() == 1);
  CHECK_FALSE(rises[0].stops);
  CHECK_FALSE(rises[0].back_to_round);
  FakeSites calm(rising_run({}, OnRise::kWarn), {1, 1});
  validate_with(calm, {4});
  CHECK(exit_codes(calm) == std::vector<int>{0, 0});
  CHECK(calm[0].checkpoints.by_round.at(9).global == warned[0].checkpoints.by_round.at(9).global);
  CHECK(calm[0].events<RiseEvent>().empty());
}

TEST_CASE("a site without the checkpoint to go back to leaves with no state to save") {
  FakeSites sites(rising_run({}, OnRise::kGoBack, 1), {1});
  validate_with(sites, {4, 4, 4, 6, 4});
  sites[0].validation.before_validation = [&](int64_t rounds_done) {
    if (rounds_done == 3) sites[0].checkpoints.by_round.erase(2);
  };
  CHECK(exit_codes(sites) == std::vector<int>{3});
  CHECK(sites[0].checkpoints.rounds.back() == 3);
}

TEST_CASE("a resume keeps what is known of the validations, unless on_rise has changed") {
  for (const bool has_changed : {false, true}) {
    auto config = rising_run({}, OnRise::kGoBack, 1);
    FakeSites first(config, {1});
    validate_with(first, {4, 4, 4, 6, 4});
    first[0].validation.before_validation = [](int64_t) {};
    CHECK(exit_codes(first) == std::vector<int>{0});
    auto& kept = first[0].checkpoints.by_round;
    if (has_changed) config.evaluate.on_rise = OnRise::kStop;
    FakeSites second(config, {1});
    validate_with(second, {4, 4, 4, 6, 4});
    second[0].checkpoints.by_round = kept;
    second[0].restore(kept.at(3));
    // The rise after round 3 is in the checkpoint, and not judged yet.
    CHECK(exit_codes(second) == std::vector<int>{0});
    CHECK(second[0].events<RiseEvent>().size() == (has_changed ? 0 : 1));
    if (!has_changed) {
      CHECK(second[0].checkpoints.by_round.at(9).global == kept.at(9).global);
    }
  }
}

}  // namespace
}  // namespace farstep
