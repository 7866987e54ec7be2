// When the sites arrive at the syncs, and how long the others wait for one that is later than it
// usually is. Not thread-safe.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace farstep::wan {

class ArrivalHistory {
 public:
  // The others wait for a site that is late for one more round, or for twice what it usually needs
  // after them, but from `least_seconds` to `most_seconds` longer than usual.
  ArrivalHistory(double least_seconds, double most_seconds)
      : least_seconds_(least_seconds), most_seconds_(most_seconds) {}

  // A site that has trained and goes on arrives at the open sync. A repetition has no effect.
  void arrive(const std::string& site, double now_seconds);
  // The open sync begins anew, and all arrive once more.
  void restart() { arrivals_.clear(); }
  // The open sync is committed.
  void commit(double now_seconds);
  // A site is no member any more.
  void forget(const std::string& site) { late_seconds_.erase(site); }

  // Returns until when the others wait at the open sync for a site that has not arrived. Returns
  // nullopt for as long as they wait without a limit: half of the `members` have not arrived, or
  // too little is known of the site.
  std::optional<double> limit_seconds(const std::string& site,
                                      const std::vector<std::string>& members) const;
  // Returns the most that a site usually arrives after half of the others; 0 if nothing is known.
  double usual_seconds(const std::string& site) const;

 private:
  // Returns when half of so many sites had arrived.
  std::optional<double> half_seconds(std::size_t num_members) const;

  const double least_seconds_, most_seconds_;
  std::optional<double> begin_seconds_;                     // of the open sync's round
  std::map<std::string, double> arrivals_;                  // at the open sync, by site
  std::map<std::string, std::deque<double>> late_seconds_;  // of the last syncs, by site
};

}  // namespace farstep::wan
