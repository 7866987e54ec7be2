// A rendezvous of sites that are threads of one process, for tests without a network.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "trainer/base/error.h"
#include "wan/membership/rendezvous.h"

namespace farstep {

// All methods may be called from any thread.
class Meeting {
 public:
  explicit Meeting(int num_sites) : num_sites_(num_sites) {}

  // Returns the rendezvous of the site with this id; the meeting must outlive it.
  std::unique_ptr<Rendezvous> seat(int site);

  // Makes all present and future waits fail with the loss of `site`.
  void lose(const std::string& site) {
    const std::lock_guard lock(mutex_);
    lost_ = site;
    changed_.notify_all();
  }

  bool has_lost() {
    const std::lock_guard lock(mutex_);
    return lost_.has_value();
  }
  void throw_if_lost() {
    const std::lock_guard lock(mutex_);
    throw_if_lost_locked();
  }

  // Returns once the site has arrived at a sync.
  void wait_for_arrival(int site, const SyncId& sync) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return arrivals_[sync].contains(site); });
  }

  std::optional<Go> arrive(int site, const SyncId& sync, const Contribution& contribution,
                           const std::string& theta_hash, std::stop_token stop) {
    std::unique_lock lock(mutex_);
    auto& arrivals = arrivals_[sync];
    arrivals[site] = {contribution, theta_hash};
    changed_.notify_all();
    if (!changed_.wait(lock, std::move(stop),
                       [&] { return lost_ || std::ssize(arrivals) == num_sites_; })) {
      arrivals.erase(site);  // no sync may begin without it
      return std::nullopt;
    }
    throw_if_lost_locked();
    Go go{.generation = 1, .round = sync.round, .fragment = sync.fragment, .contributions = {}};
    for (const auto& [id, arrival] : arrivals) {
      FARSTEP_CHECK(arrival.second == theta_hash, "theta_global differs before the sync");
      go.contributions.push_back(arrival.first);
    }
    return go;
  }

  void vote(int site, const SyncId& sync, const std::string& theta_hash) {
    std::unique_lock lock(mutex_);
    auto& votes = votes_[sync];
    votes[site] = theta_hash;
    changed_.notify_all();
    changed_.wait(lock, [&] { return lost_ || std::ssize(votes) == num_sites_; });
    // A sync that all have voted on counts, whoever is lost afterwards.
    if (std::ssize(votes) < num_sites_) throw_if_lost_locked();
    for (const auto& [id, vote] : votes) {
      FARSTEP_CHECK(vote == theta_hash, "theta_global differs after the exchange");
    }
  }

 private:
  void throw_if_lost_locked() const {
    if (lost_) throw PeerError(*lost_, "site " + *lost_ + " is gone");
  }

  const int num_sites_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<std::string> lost_;
  std::map<SyncId, std::map<int, std::pair<Contribution, std::string>>> arrivals_;  // by site
  std::map<SyncId, std::map<int, std::string>> votes_;                              // by site
};

inline std::unique_ptr<Rendezvous> Meeting::seat(int site) {
  class Seat : public Rendezvous {
   public:
    Seat(Meeting& meeting, int site) : meeting_(meeting), site_(site) {}
    std::optional<Go> arrive(const SyncId& sync, const Contribution& contribution,
                             const std::string& theta_hash, std::stop_token stop) override {
      return meeting_.arrive(site_, sync, contribution, theta_hash, std::move(stop));
    }
    void vote(const SyncId& sync, const std::string& theta_hash) override {
      meeting_.vote(site_, sync, theta_hash);
    }

   private:
    Meeting& meeting_;
    const int site_;
  };
  return std::make_unique<Seat>(*this, site);
}

}  // namespace farstep
