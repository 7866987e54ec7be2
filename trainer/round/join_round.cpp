// A newcomer takes a member's state as it is between two rounds. It then takes part in the next
// round's syncs without work. From there on it is a member like the others, without a special case.
#include "trainer/round/join_round.h"

#include <algorithm>
#include <set>

#include "trainer/base/error.h"
#include "trainer/config/strict_json.h"
#include "trainer/round/round_plan.h"
#include "trainer/round/round_record.h"
#include "trainer/round/validation.h"

namespace farstep {

namespace {

// The members for which the round is planned. If this site was lost in this round, its former
// process is one of them.
View planned_view(const SharedState& state) {
  return {.generation = state.generation, .members = state.members, .self = 0};
}

// A donor is trusted for nothing, and the parts of a run take this for granted.
void require_fits(const RunConfig& run, const SharedState& state) {
  const auto refuse = [](const std::string& what) {
    throw DataError("the run's state does not fit this run: " + what);
  };
  if (state.rounds_done > run.outer.rounds) {
    refuse(
        fmt::format("it is of round {}, and the run has {}", state.rounds_done, run.outer.rounds));
  }
  require_whole(state.cycle);
  const auto& members = state.members;
  if (std::ssize(members) > run.most_sites() ||
      std::set(members.begin(), members.end()).size() != members.size()) {
    refuse(fmt::format("it has {} members, some twice or more than {}", members.size(),
                       run.most_sites()));
  }
  // This looks at all of them, and refuses one that the run does not have.
  const auto num_training =
      std::ranges::count_if(members, [&](const auto& site) { return run.trains(site); });
  if (num_training == 0) refuse("none of its members trains");
  if (state.reduction_shares.empty()) return;  // equal ones
  const auto fault = outer_optimizer::fault_of_shares(state.reduction_shares, members.size());
  if (!fault.empty()) refuse("reduction_shares: it has " + fault);
}

void take(Run& run, const SharedState& state) {
  require_fits(run.config, state);
  auto& strategy = run.strategy;
  strategy.restore(state.strategy);
  if (strategy.syncs_of_round() > 0) {
    throw DataError("the run's state is of the middle of a round");
  }
  // What the donor's own weights still have to bring is the donor's.
  const outer_optimizer::Range all{0, std::ssize(strategy.theta_global())};
  auto& theta = run.site.theta();
  const auto local = theta.pull(all);
  strategy.drop_steps(local);
  theta.push(all, local);
  run.planner.set_view(planned_view(state));
  run.planner.restore(state.planner);
  run.position.windows = RunWindows(state.windows);
  run.reduction_shares = state.reduction_shares;
  run.cycle = state.cycle;
  run.position.rounds_done = state.rounds_done;
  run.position.measuring_syncs = state.measuring_syncs;
  run.position.unvalidated_since.reset();
  run.position.validations = state.validations;
  run.position.own_validation.reset();
  run.site.resume(0, 0, 0, {});
}

}  // namespace

SharedState shared_state(const Run& run) {
  return {.rounds_done = run.position.rounds_done,
          .windows = run.position.windows.state(),
          .measuring_syncs = run.position.measuring_syncs,
          .generation = run.peers.view().generation,
          .members = run.peers.view().members,
          .reduction_shares = run.reduction_shares,
          .cycle = run.cycle,
          .validations = run.position.validations,
          .planner = run.planner.state(),
          .strategy = run.strategy.state(),
          .momentum_hash = {}};
}

SharedState read_shared_state(std::string_view text) {
  return read_untrusted<SharedState>(text, "the run's state",
                                     {.depth = 64, .members = 256, .values = 1'000'000});
}

// If no plan can be made of it, it is the donor's fault and not that of this site's config.
void take_shared_state(Run& run, const SharedState& state) {
  try {
    take(run, state);
  } catch (const ConfigError& error) {
    throw DataError(error.what());
  }
}

bool attend_round(Run& run, const SharedState& state, const std::stop_token& stop) {
  const auto& plan = run.planner.plan(planned_view(state));
  run.peers.set_activity(run.position.round(), 0, "joining");
  RoundRecord record(run);
  const RoundStart start{.round = run.position.round(),
                         .view = run.peers.view(),
                         .planned = planned_work(run.config, plan),
                         .exchanges = &run.peers.exchanges(),
                         .theta = &run.site.theta()};
  if (!record.add(run.strategy.attend(start, stop))) return false;
  const int64_t sequences_before = run.position.windows.pool().next();
  reserve_windows(run, plan);
  plan_after_round(run, record.syncs());
  heed_validation(run, record.syncs());
  run.position.unvalidated_since = sequences_before;
  return true;
}

}  // namespace farstep
