// What a run will give by a plan: its speed, each site's part in it, the run without one site, and
// the bytes over the links.
//
// Values and pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heterogeneity/knowledge/site_knowledge.h"
#include "heterogeneity/policy/plan.h"
#include "heterogeneity/policy/plan_config.h"
#include "outer_optimizer/schedule/averaging.h"
#include "outer_optimizer/sync_config.h"

namespace farstep::heterogeneity {

// The settings that a forecast depends on.
struct ForecastSettings {
  PlanConfig plan;
  outer_optimizer::AveragingRule averaging = outer_optimizer::AveragingRule::kBatch;
  outer_optimizer::SyncConfig sync;
  // Of the model and its data; nullopt if the profiles do not say.
  std::optional<int64_t> parameters, sequence_length;
};

// The run without one of its sites, planned anew.
struct RunWithout {
  double speed_share = 0;  // of the whole run's speed
  double round_seconds = 0;
};

struct SiteForecast {
  SitePlan work;
  double averaging_weight = 0;
  double token_share = 0;                   // of the tokens of a round
  std::optional<double> tokens_per_second;  // in the run: its waits and the exchange count
  std::optional<double> alone_per_second;   // while it trains
  std::optional<RunWithout> without;        // nullopt if it is not known, or nobody else trains
};

// Tokens are examples where the length of a sequence is not known, or there are none.
struct Forecast {
  Policy policy = Policy::kUniform;
  bool counts_examples = false;
  std::vector<SiteForecast> sites;  // in the order of the plan
  int64_t tokens_a_round = 0;
  std::optional<double> train_seconds;    // of a round, until all sites are at the sync
  std::optional<double> exposed_seconds;  // of a round: the exchange that training does not hide
  std::optional<double> round_seconds;    // train_seconds, and exposed_seconds if these are known
  std::optional<double> total_idle_seconds;  // of a round and all sites: waits for the slowest
  std::optional<double> tokens_per_second;   // of the run
  std::optional<std::size_t> fastest;        // the site that is fastest alone
  // What each site sends each other one in a round, by the exchange `direct`; nullopt if the model
  // is not known, or other exchanges decide.
  std::optional<int64_t> link_bytes_a_round;
  std::vector<std::string> warnings;  // in words, with what to do
};

// Returns the forecast of `plan`, which was made for `sites`, in their order. The run without a
// site is planned for at most 16 sites, as each of them needs a plan of its own.
Forecast forecast_of(const ForecastSettings& settings, std::span<const SiteKnowledge> sites,
                     const RoundPlan& plan);

// Returns the averaging weights if every site does its planned work.
std::vector<double> averaging_weights(outer_optimizer::AveragingRule rule, const RoundPlan& plan);

}  // namespace farstep::heterogeneity
