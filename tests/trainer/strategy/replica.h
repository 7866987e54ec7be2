// A site that trains a plain vector of numbers, with the real strategy: for tests of what the sites
// become together.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "outer_optimizer/exchange/direct_exchange.h"
#include "tests/support/memory_transport.h"
#include "tests/support/one_exchange.h"
#include "tests/support/temporary_folder.h"
#include "tests/trainer/strategy/meeting.h"
#include "tests/trainer/strategy/vector_sites.h"
#include "trainer/strategy/eager_updates.h"
#include "trainer/strategy/low_communication.h"

namespace farstep {

// A site that syncs by a `Sync`, a strategy.
template <typename Sync>
class BasicReplica {
 public:
  static constexpr int64_t kTokensPerStep = 10;
  static constexpr double kLearningRate = 1;
  using Step = std::function<void(std::vector<float>&)>;

  // Starts from theta = `start`; records its events in `folder`. `present` of the run's sites
  // really take part.
  BasicReplica(const RunConfig& run, int site, std::vector<float> start,
               wan::Rendezvous& rendezvous, outer_optimizer::Exchange& exchange,
               const std::filesystem::path& folder, std::size_t present)
      : view_(view_of(run, static_cast<std::size_t>(site))),
        exchanges_(exchange),
        present_(present),
        recorder_(folder / std::to_string(site), view_.own_name(), clock_),
        theta(std::move(start)),
        strategy(settings_of(run), view_, {theta, {{"first", 0}, {"second", 3}}},
                 {rendezvous, recorder_, clock_}) {}

  // A round begins after `steps_done` of its steps, of which the site plans to do `local_steps`.
  Synced begin(int64_t round, int64_t local_steps, const std::stop_token& stop = {}) {
    plan(round, local_steps);
    return again(stop);
  }
  void plan(int64_t round, int64_t local_steps) {
    start_ = {.round = round,
              .view = view_,
              .planned = {},
              .tokens_per_step = kTokensPerStep,
              .exchanges = &exchanges_,
              .theta = &local_};
    for (std::size_t place = 0; place < present_; ++place) {
      // The others may do whatever they do.
      start_.planned.push_back({.site = view_.members[place],
                                .batch = 1,
                                .local_steps = local_steps,
                                .most_steps = 1000,
                                .ends_by_steps = false});
    }
  }
  // What is due is done again, after a failure.
  Synced again(const std::stop_token& stop = {}) { return strategy.begin(start_, so_far(), stop); }
  Synced step(const Step& step, const std::stop_token& stop = {}) {
    step(theta);
    ++steps_done;
    return strategy.after_step(kLearningRate, so_far(), stop);
  }
  // Takes part in a round without steps.
  Synced attend(int64_t round, int64_t local_steps) {
    plan(round, local_steps);
    return strategy.attend(start_, {});
  }
  Synced end(const std::stop_token& stop = {}) { return strategy.end(so_far(), stop); }

  // One round of `local_steps` steps after `steps_done` of it, each done by `step`; `after` sees
  // the syncs that were applied after each. False if it was stopped.
  bool run_round(int64_t round, int64_t local_steps, const Step& step,
                 const std::function<void(const std::vector<SyncRecord>&)>& after = {},
                 const std::stop_token& stop = {}) {
    if (begin(round, local_steps, stop).is_stopped) return false;
    while (steps_done < local_steps) {
      auto synced = this->step(step, stop);
      if (!synced.is_stopped && steps_done == local_steps) {
        auto rest = end(stop);
        std::ranges::move(rest.applied, std::back_inserter(synced.applied));
        synced.is_stopped = rest.is_stopped;
      }
      if (after) after(synced.applied);
      if (synced.is_stopped) return false;
    }
    steps_done = 0;
    return true;
  }

 private:
  heterogeneity::RoundTiming so_far() const {
    return {.steps = steps_done, .batch = 1, .micro_batch = 1};
  }

  const View view_;
  OneExchange exchanges_;
  const std::size_t present_;
  RealClock clock_;
  Recorder recorder_;
  RoundStart start_;

 public:
  std::vector<float> theta;

 private:
  VectorTheta local_{theta};

 public:
  Sync strategy;
  int64_t steps_done = 0;
};

// The sites of a run, each to be driven by a thread of its own.
template <typename Sync>
class BasicSites {
 public:
  using Replica = BasicReplica<Sync>;

  BasicSites(const RunConfig& run, const std::vector<float>& start)
      : meeting(static_cast<int>(run.sites.size())) {
    std::vector<std::string> names;
    for (const auto& site : run.sites) names.push_back(site.name);
    transports = connect_in_memory(names, 10);
    for (std::size_t site = 0; site < names.size(); ++site) {
      seats_.push_back(meeting.seat(static_cast<int>(site)));
      exchanges_.push_back(std::make_unique<outer_optimizer::DirectExchange>(*transports[site]));
      replicas.push_back(std::make_unique<Replica>(run, static_cast<int>(site), start,
                                                   *seats_[site], *exchanges_[site], folder_.path(),
                                                   names.size()));
    }
  }

 private:
  const TemporaryFolder folder_;

 public:
  Meeting meeting;
  std::vector<std::unique_ptr<wan::Transport>> transports;

 private:
  std::vector<std::unique_ptr<wan::Rendezvous>> seats_;
  std::vector<std::unique_ptr<outer_optimizer::DirectExchange>> exchanges_;

 public:
  std::vector<std::unique_ptr<Replica>> replicas;  // last: end before what they use
};

using Replica = BasicReplica<LowCommunication>;
using Sites = BasicSites<LowCommunication>;
using EagerSites = BasicSites<EagerUpdates>;

}  // namespace farstep
