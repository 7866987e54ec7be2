// Fakes the way of a run's state from a donor to a newcomer, as memory of the process.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/strategy/meeting.h"
#include "trainer/round/handover.h"
#include "trainer/round/join_round.h"

namespace farstep {

// Keeps the states that donors hand over. Thread-safe.
class HandedStates {
 public:
  struct State {
    SharedState shared;
    std::vector<float> global, momentum;
  };
  void put(const std::string& site, State state) {
    const std::lock_guard lock(mutex_);
    states_[site] = std::move(state);
    changed_.notify_all();
  }
  // Waits for the newest state of a site, and takes it. A donor that has failed never puts it.
  State take(const std::string& site) {
    std::unique_lock lock(mutex_);
    const bool is_there =
        changed_.wait_for(lock, std::chrono::seconds(60), [&] { return states_.contains(site); });
    FARSTEP_CHECK(is_there, "nobody hands over a state to {}", site);
    return std::move(states_.extract(site).mapped());
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, State> states_;  // guarded by mutex_
};

class FakeHandover : public Handover {
 public:
  FakeHandover(HandedStates& states, Meeting& meeting) : states_(states), meeting_(meeting) {}
  std::optional<double> expected_seconds(const Run&) const override { return seconds; }
  void begin(Run& run, int64_t /*round*/, std::span<const wan::Newcomer> newcomers) override {
    {
      const std::lock_guard lock(mutex_);
      for (const auto& newcomer : newcomers) {
        uncopied_.push_back({.site = newcomer.site,
                             .shared = shared_state(run),
                             .theta = run.strategy.theta_global(),
                             .momentum = run.strategy.outer_momentum()});
      }
    }
    meeting_.note_handover();  // before the newcomer has the state, and comes
    if (!is_slow) copy();
  }
  void wait_for_copies() override { copy(); }
  // Copies what is not copied yet. Any thread may call it.
  void copy() {
    const std::lock_guard lock(mutex_);
    for (const auto& [site, shared, theta, momentum] : std::exchange(uncopied_, {})) {
      states_.put(site, {.shared = shared,
                         .global = {theta.begin(), theta.end()},
                         .momentum = {momentum.begin(), momentum.end()}});
    }
  }

  double seconds = 0;    // that a transfer is expected to take
  bool is_slow = false;  // a state is copied only when somebody waits, or by copy()

 private:
  struct Uncopied {
    std::string site;
    SharedState shared;
    std::span<const float> theta, momentum;
  };
  HandedStates& states_;
  Meeting& meeting_;
  std::mutex mutex_;
  std::vector<Uncopied> uncopied_;  // guarded by mutex_
};

}  // namespace farstep
