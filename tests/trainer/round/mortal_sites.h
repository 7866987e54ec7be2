// Fake sites that die in a round, the kinds of rounds in which they do, and what holds after it.
#pragma once

#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/trainer/round/fake_sites.h"
#include "tests/trainer/round/trained_windows.h"

namespace farstep {

struct RoundKind {
  int64_t fragments, delay_steps;
  double alpha;
  outer_optimizer::CodecKind codec;
  heterogeneity::Policy policy;
  outer_optimizer::StrategyKind strategy = outer_optimizer::StrategyKind::kLowCommunication;
};

inline const RoundKind kPlainRounds = {1, 0, 0, outer_optimizer::CodecKind::kFp32,
                                       heterogeneity::Policy::kUniform};
inline const RoundKind kHybridRounds = {1, 0, 0, outer_optimizer::CodecKind::kInt8,
                                        heterogeneity::Policy::kHybrid};
inline const RoundKind kDelayedRounds = {3, 2, 0.5, outer_optimizer::CodecKind::kInt8,
                                         heterogeneity::Policy::kUniform};
inline const RoundKind kFragmentedRounds = {3, 0, 0, outer_optimizer::CodecKind::kFp32,
                                            heterogeneity::Policy::kHybrid};
inline const RoundKind kEagerRounds = {1,
                                       0,
                                       0,
                                       outer_optimizer::CodecKind::kInt8,
                                       heterogeneity::Policy::kUniform,
                                       outer_optimizer::StrategyKind::kEagerUpdates};

inline RunConfig run_of(const RoundKind& kind, int num_sites, int64_t rounds) {
  auto run = strategy_run(num_sites, kind.fragments, kind.delay_steps, kind.alpha, 12);
  run.strategy.kind = kind.strategy;
  run.sync.codec.kind = kind.codec;
  run.outer.rounds = rounds;
  run.plan.policy = kind.policy;
  return run;
}

struct Death {};

// Makes a site die before this step of this round, and the others go on. With `comes_back` they
// wait for it, once they have given it their state.
inline void let_die(FakeSites& sites, std::size_t victim, int64_t round, int64_t step,
                    bool comes_back = false) {
  sites.meeting.let_others_go_on();
  sites[victim].training.before_step = [=, &sites](const StepOrder& order) {
    if (order.round < round || (order.round == round && order.step < step)) return;
    sites.lose("s" + std::to_string(victim), comes_back);
    throw Death();
  };
}

// Returns what became of a site that runs `function`, which tells whether it has done all rounds.
template <typename Function>
std::string outcome_of(Function function) {
  try {
    return function() ? "done" : "stopped";
  } catch (const Death&) {
    return "died";
  } catch (const std::exception& error) {
    return error.what();
  }
}

// Runs all sites. Returns what became of each.
inline std::vector<std::string> outcomes_of(FakeSites& sites) {
  return wan::run_ranks(static_cast<int>(sites.sites.size()), [&](int site) {
    return outcome_of([&] { return run_rounds(sites[static_cast<std::size_t>(site)].run, {}); });
  });
}

}  // namespace farstep
