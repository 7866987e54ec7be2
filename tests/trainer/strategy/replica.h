// A site that trains a plain vector of numbers, with the real strategy: for tests of what the sites
// become together.
#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "outer_optimizer/exchange/direct_exchange.h"
#include "tests/support/temporary_folder.h"
#include "tests/trainer/strategy/meeting.h"
#include "trainer/base/checksum.h"
#include "trainer/strategy/eager_updates.h"
#include "trainer/strategy/low_communication.h"
#include "wan/transport/memory_transport.h"

namespace farstep {

// theta_local as a vector.
class VectorTheta : public LocalTheta {
 public:
  explicit VectorTheta(std::vector<float>& values) : values_(values) {}
  std::span<float> pull(const Range& range) override {
    return std::span(values_).subspan(static_cast<std::size_t>(range.begin),
                                      static_cast<std::size_t>(range.size()));
  }
  void start_pull(const Range& range) override {
    const auto values = pull(range);
    pulled_.assign(values.begin(), values.end());
  }
  std::span<float> finish_pull() override { return pulled_; }
  void push(const Range& range, std::span<const float> values) override {
    if (values.data() != pull(range).data()) std::ranges::copy(values, pull(range).begin());
  }

 private:
  std::vector<float>& values_;
  std::vector<float> pulled_;
};

// A run of `num_sites` sites whose syncs are as given.
inline RunConfig strategy_run(int num_sites, int64_t fragments, int64_t delay_steps, double alpha,
                              int64_t base_steps) {
  RunConfig run;
  for (int site = 0; site < num_sites; ++site) {
    run.sites.emplace_back().name = "s" + std::to_string(site);
  }
  run.sync.fragments = fragments;
  run.sync.delay_steps = delay_steps;
  run.sync.alpha = alpha;
  run.plan.base_steps = base_steps;
  return run;
}

// A step that leads every site and every value elsewhere, and depends on where they are.
inline void wander(std::vector<float>& theta, int site) {
  for (std::size_t k = 0; k < theta.size(); ++k) {
    theta[k] += 0.1F * std::sin(theta[k] * static_cast<float>(site + 2) + static_cast<float>(k));
  }
}

inline std::vector<float> start_values(std::size_t size) {
  std::vector<float> values(size);
  for (std::size_t k = 0; k < size; ++k) values[k] = std::cos(static_cast<float>(k));
  return values;
}

inline std::string hash_of(std::span<const float> values) {
  return checksum_text(checksum(std::as_bytes(values)));
}

// A site that syncs by a `Sync`, a strategy.
template <typename Sync>
class BasicReplica {
 public:
  static constexpr int64_t kTokensPerStep = 10;

  // Starts from theta = `start`; records its events in `folder`.
  BasicReplica(const RunConfig& run, int site, std::vector<float> start, Rendezvous& rendezvous,
               Exchange& exchange, const std::filesystem::path& folder)
      : recorder_(folder / std::to_string(site), run.sites[static_cast<std::size_t>(site)].name,
                  clock_),
        theta(std::move(start)),
        strategy(run, static_cast<std::size_t>(site), theta, {{"first", 0}, {"second", 3}},
                 {rendezvous, exchange, recorder_, clock_}) {}

  // One round of `local_steps` steps after `steps_done` of it, each done by `step`; what `after`
  // sees, it sees after each step and what was due then. False if it was stopped.
  bool run_round(int64_t round, int64_t local_steps,
                 const std::function<void(std::vector<float>&)>& step,
                 const std::function<void(const std::vector<SyncRecord>&)>& after = {},
                 const std::stop_token& stop = {}) {
    strategy.begin_round(round, local_steps);
    if (steps_done > 0 && sync(false, stop).is_stopped) return false;
    while (steps_done < local_steps) {
      step(theta);
      strategy.count_step(kTokensPerStep);
      ++steps_done;
      auto synced = sync(steps_done == local_steps, stop);
      if (after) after(synced.applied);
      if (synced.is_stopped) return false;
    }
    steps_done = 0;
    return true;
  }

  Synced sync(bool round_ends, const std::stop_token& stop = {}) {
    return strategy.sync({.batch = 1, .round_steps = steps_done}, round_ends, local_, stop);
  }

 private:
  RealClock clock_;
  Recorder recorder_;

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
      exchanges_.push_back(std::make_unique<DirectExchange>(*transports[site]));
      replicas.push_back(std::make_unique<Replica>(
          run, static_cast<int>(site), start, *seats_[site], *exchanges_[site], folder_.path()));
    }
  }

 private:
  const TemporaryFolder folder_;

 public:
  Meeting meeting;
  std::vector<std::unique_ptr<Transport>> transports;

 private:
  std::vector<std::unique_ptr<Rendezvous>> seats_;
  std::vector<std::unique_ptr<DirectExchange>> exchanges_;

 public:
  std::vector<std::unique_ptr<Replica>> replicas;  // last: end before what they use
};

using Replica = BasicReplica<LowCommunication>;
using Sites = BasicSites<LowCommunication>;
using EagerSites = BasicSites<EagerUpdates>;

}  // namespace farstep
