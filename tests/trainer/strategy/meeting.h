// A rendezvous of sites that are threads of one process, for tests without a network.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/error.h"
#include "wan/admission/served_run.h"
#include "wan/protocol/rendezvous.h"

namespace farstep {

// All methods may be called from any thread. A wait for a site that has failed, and so never comes,
// ends with an InternalError, and ends those of all other sites.
class Meeting {
 public:
  // Of sites that are named s0, s1, ...
  explicit Meeting(int num_sites) : Meeting(names(num_sites)) {}
  explicit Meeting(std::vector<std::string> names) : names_(std::move(names)) {
    for (int site = 0; site < std::ssize(names_); ++site) members_[generation_].push_back(site);
  }

  // Returns the rendezvous of the site with this id; the meeting must outlive it.
  std::unique_ptr<wan::Rendezvous> seat(int site);

  // From here on the others go on in a new generation when a site is lost.
  void let_others_go_on() { others_go_on_ = true; }

  // From here on deltas are judged as the coordinator does it.
  void judge_by(wan::DeltaJudge judge) { judge_ = std::move(judge); }

  // Asks `donor` for the state after `round`, for a site that lose() has announced.
  void ask(int donor, int site, int64_t round) {
    const std::lock_guard lock(mutex_);
    const wan::Newcomer newcomer{names_[index(site)], {}, names_[index(donor)]};
    requests_[donor] = {.round = round, .newcomer = newcomer};
  }
  // As Peers::take_state_requests(). A request is taken once.
  std::vector<wan::DonateMessage> take_state_requests(int donor, int64_t round) {
    const std::lock_guard lock(mutex_);
    const auto found = requests_.find(donor);
    if (found == requests_.end() || found->second.round != round) return {};
    const std::vector<wan::DonateMessage> taken{found->second};
    requests_.erase(found);
    return taken;
  }
  // The newcomers have the state before the next sync, at which the members wait for them.
  void note_handover() {
    const std::lock_guard lock(mutex_);
    are_handed_over_ = true;
  }

  // Loses a site. All present and future waits fail, or begin anew among the others. One that
  // `comes_back` gets the state after the present round, at the end of which the members wait for
  // it. It is announced with the loss: before it, a sync could name the lost site as the donor;
  // after it, the others could end the run.
  void lose(const std::string& site, bool comes_back = false) {
    const std::lock_guard lock(mutex_);
    if (comes_back) {
      newcomers_.insert(static_cast<int>(std::ranges::find(names_, site) - names_.begin()));
    }
    newest_lost_ = site;
    if (others_go_on_) {
      auto members = members_[generation_];
      std::erase_if(members, [&](int member) { return names_[index(member)] == site; });
      ++processes_[site];
      members_[++generation_] = std::move(members);
    } else {
      has_ended_ = true;
    }
    changed_.notify_all();
  }
  // Begins the generation of the same members that has this number.
  void set_generation(int64_t generation) {
    const std::lock_guard lock(mutex_);
    members_[generation] = members_[generation_];
    generation_ = generation;
  }

  bool has_lost() {
    const std::lock_guard lock(mutex_);
    return has_ended_;
  }
  void throw_if_lost() {
    const std::lock_guard lock(mutex_);
    if (has_ended_) throw_lost();
  }

  // Returns once a process of the site is lost, while the others go on.
  void wait_for_loss(int site) {
    std::unique_lock lock(mutex_);
    wait(lock, [&] { return processes_[names_[index(site)]] > 0; });
  }
  // Returns once the site has arrived at a sync.
  void wait_for_arrival(int site, const wan::SyncId& sync) {
    std::unique_lock lock(mutex_);
    wait(lock, [&] { return arrivals_[{generation_, sync}].contains(site); });
  }

  // `process` is the number of the site's process: one that was lost must not arrive in the place
  // of the one that follows it.
  std::optional<wan::Go> arrive(int site, int process, const wan::SyncId& sync,
                                const wan::Contribution& contribution,
                                const std::string& theta_hash, std::stop_token stop) {
    std::unique_lock lock(mutex_);
    while (true) {
      if (process != processes_[names_[index(site)]]) throw_lost();
      const int64_t generation = generation_;
      const auto members = members_[generation];
      if (has_ended_) throw_lost();
      if (std::ranges::count(members, site) == 0) {
        admit(site, sync);
        continue;
      }
      auto& arrivals = arrivals_[{generation, sync}];
      arrivals[site] = {contribution, theta_hash};
      changed_.notify_all();
      // Decided once, and not in a generation that is over.
      const auto have_all_arrived = [&] {
        if (generation_ == generation && arrivals.size() == members.size() &&
            (newcomers_.empty() || !are_handed_over_)) {
          started_.emplace(generation, sync);
        }
        return started_.contains({generation, sync});
      };
      if (!wait(
              lock, [&] { return has_ended_ || have_all_arrived() || generation_ > generation; },
              stop)) {
        arrivals.erase(site);  // no sync may begin without it
        return std::nullopt;
      }
      if (has_ended_) throw_lost();
      if (!have_all_arrived()) continue;
      generation_of_sync_[site] = generation;
      wan::Go go{.generation = generation,
                 .round = sync.round,
                 .fragment = sync.fragment,
                 .contributions = {}};
      for (const int member : members) {
        const auto& arrival = arrivals[member];
        FARSTEP_CHECK(arrival.second == theta_hash, "theta_global differs before the sync");
        go.contributions.push_back(arrival.first);
        go.sites.push_back(names_[index(member)]);
      }
      go.newcomers = newcomers_of(generation, sync);
      go.outliers = judge_(go.sites, go.contributions);
      return go;
    }
  }

  void vote(int site, const wan::SyncId& sync, const std::string& theta_hash) {
    std::unique_lock lock(mutex_);
    const int64_t generation = generation_of_sync_[site];
    const std::size_t voters = members_[generation].size();
    auto& votes = votes_[{generation, sync}];
    // A late vote must not complete a sync that the others have already begun anew.
    if (generation_ > generation) throw_lost();
    votes[site] = theta_hash;
    changed_.notify_all();
    wait(lock, [&] { return has_ended_ || votes.size() == voters || generation_ > generation; });
    // A sync that all have voted on counts, whoever is lost afterwards.
    if (votes.size() < voters) throw_lost();
    for (const auto& [id, vote] : votes) {
      FARSTEP_CHECK(vote == theta_hash, "theta_global differs after the exchange");
    }
  }

  bool is_renewed(int64_t generation) {
    std::unique_lock lock(mutex_);
    if (!others_go_on_) return false;
    wait(lock, [&] { return has_ended_ || generation_ > generation; });
    return generation_ > generation;
  }

 private:
  // No site of a test takes nearly as long to come; below the time limit of a test.
  static constexpr std::chrono::seconds kPatience{60};

  // Waits until `is_over`. Returns false if a stop was requested before.
  template <typename Condition>
  bool wait(std::unique_lock<std::mutex>& lock, Condition is_over,
            const std::stop_token& stop = {}) {
    if (changed_.wait_for(lock, stop, kPatience, is_over)) return true;
    if (stop.stop_requested()) return false;
    has_ended_ = true;
    newest_lost_ = "that did not come";
    changed_.notify_all();
    throw InternalError("a site of the test did not come to the meeting in time");
  }
  // Begins a generation with a newcomer, unless all members have arrived. The caller holds mutex_.
  void admit(int site, const wan::SyncId& sync) {
    if (!newcomers_.contains(site)) throw_lost();
    FARSTEP_CHECK(are_handed_over_ && sync.fragment == 0, "a newcomer in the middle of a round");
    auto members = members_[generation_];
    members.insert(std::ranges::upper_bound(members, site), site);
    newcomers_.erase(site);
    are_handed_over_ = !newcomers_.empty();
    members_[++generation_] = std::move(members);
    changed_.notify_all();
  }
  // Returns the same to all members of a sync. The first member is the donor. The caller holds
  // mutex_.
  const std::vector<wan::Newcomer>& newcomers_of(int64_t generation, const wan::SyncId& sync) {
    const auto [entry, is_new] = handed_over_.try_emplace({generation, sync});
    const auto& arrival = arrivals_[{generation, sync}].begin()->second.first;
    if (!is_new || sync == wan::kMeasuringSync || sync.fragment + 1 < arrival.fragments) {
      return entry->second;
    }
    are_handed_over_ = !newcomers_.empty();
    for (const int site : newcomers_) {
      entry->second.push_back({.site = names_[index(site)],
                               .request = {},
                               .donor = names_[index(members_[generation].front())]});
    }
    return entry->second;
  }

  template <typename Value>
  using BySync =
      std::map<std::pair<int64_t, wan::SyncId>, std::map<int, Value>>;  // by generation, site

  static std::vector<std::string> names(int num_sites) {
    std::vector<std::string> names;
    for (int site = 0; site < num_sites; ++site) names.push_back("s" + std::to_string(site));
    return names;
  }
  static std::size_t index(int site) { return static_cast<std::size_t>(site); }
  [[noreturn]] void throw_lost() const {
    throw PeerError(newest_lost_, "site " + newest_lost_ + " is gone");
  }

  const std::vector<std::string> names_;
  wan::DeltaJudge judge_ = wan::judge_nothing;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::atomic<bool> others_go_on_ = false;
  bool has_ended_ = false;
  std::string newest_lost_;
  std::map<std::string, int> processes_;  // how many of a site's were lost
  int64_t generation_ = 1;
  std::map<int64_t, std::vector<int>> members_;  // by generation
  std::map<int, int64_t> generation_of_sync_;    // the newest, by site
  std::set<int> newcomers_;                      // that are no members yet
  bool are_handed_over_ = false;                 // the newcomers have the newest shared state
  std::map<int, wan::DonateMessage> requests_;   // by donor
  std::map<std::pair<int64_t, wan::SyncId>, std::vector<wan::Newcomer>> handed_over_;
  std::set<std::pair<int64_t, wan::SyncId>> started_;
  BySync<std::pair<wan::Contribution, std::string>> arrivals_;
  BySync<std::string> votes_;
};

inline std::unique_ptr<wan::Rendezvous> Meeting::seat(int site) {
  class Seat : public wan::Rendezvous {
   public:
    Seat(Meeting& meeting, int site, int process)
        : meeting_(meeting), site_(site), process_(process) {}
    std::optional<wan::Go> arrive(const wan::SyncId& sync, const wan::Contribution& contribution,
                                  const std::string& theta_hash, std::stop_token stop) override {
      return meeting_.arrive(site_, process_, sync, contribution, theta_hash, std::move(stop));
    }
    bool vote(const wan::SyncId& sync, const std::string& theta_hash, std::stop_token) override {
      meeting_.vote(site_, sync, theta_hash);
      return true;
    }
    bool is_renewed(int64_t generation, const std::string& /*suspect*/, std::stop_token) override {
      return meeting_.is_renewed(generation);
    }

   private:
    Meeting& meeting_;
    const int site_, process_;
  };
  const std::lock_guard lock(mutex_);
  return std::make_unique<Seat>(*this, site, processes_[names_[index(site)]]);
}

}  // namespace farstep
