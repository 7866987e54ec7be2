// A fixed limit would take a slow site's usual round for a failure, or a fast one's failure for a
// usual round. So each site is measured by its own lateness against half of the members.
#include "wan/roster/arrival_history.h"

#include <algorithm>

namespace farstep::wan {

namespace {

// A site that is slow for a while is as slow as usual after so many syncs.
constexpr std::size_t kMostSyncs = 8;
// The first syncs of a site tell little: its caches are cold, and the plan knows nothing of it.
constexpr std::size_t kLeastSyncs = 3;

}  // namespace

void ArrivalHistory::arrive(const std::string& site, double now_seconds) {
  arrivals_.try_emplace(site, now_seconds);
}

void ArrivalHistory::commit(double now_seconds) {
  if (const auto half = half_seconds(arrivals_.size())) {
    for (const auto& [site, seconds] : arrivals_) {
      auto& known = late_seconds_[site];
      known.push_back(std::max(0.0, seconds - *half));
      if (known.size() > kMostSyncs) known.pop_front();
    }
  }
  arrivals_.clear();
  begin_seconds_ = now_seconds;
}

std::optional<double> ArrivalHistory::half_seconds(std::size_t num_members) const {
  const std::size_t half = (num_members + 1) / 2;
  if (half == 0 || arrivals_.size() < half) return std::nullopt;
  std::vector<double> times;
  for (const auto& [site, seconds] : arrivals_) times.push_back(seconds);
  std::ranges::sort(times);
  return times[half - 1];
}

double ArrivalHistory::usual_seconds(const std::string& site) const {
  const auto known = late_seconds_.find(site);
  return known == late_seconds_.end() ? 0 : std::ranges::max(known->second);
}

std::optional<double> ArrivalHistory::limit_seconds(const std::string& site,
                                                    const std::vector<std::string>& members) const {
  const auto known = late_seconds_.find(site);
  const auto half = half_seconds(members.size());
  const bool is_known = known != late_seconds_.end() && known->second.size() >= kLeastSyncs;
  if (!is_known || !half || !begin_seconds_) return std::nullopt;
  const double usual = usual_seconds(site);
  const double round = *half - *begin_seconds_;
  return *half + usual + std::clamp(std::max(round, usual), least_seconds_, most_seconds_);
}

}  // namespace farstep::wan
