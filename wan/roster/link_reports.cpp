// A link may carry nothing though no connection has broken, as after an outage, until the kernel
// sends again. So one report proves little, and a series of them much.
#include "wan/roster/link_reports.h"

#include <algorithm>

namespace farstep::wan {

namespace {

// How long a link may carry nothing though both of its ends are heard. After an outage the kernel
// sends again within 2 s, where it can be told to.
constexpr double kStandingSeconds = 5;
constexpr double kStandingGapSeconds = 3;  // between two reports of a member, at least
// A try of a newcomer that does not reach a member stops all others for connect_seconds. So the
// first pause is longer than that, and each next one twice as long, but shorter than a site waits.
constexpr double kFirstPauseAttempts = 1.5;
constexpr double kLongestPauseShare = 0.9;  // of join_seconds

}  // namespace

LinkReports::LinkReports(const Deadlines& deadlines, double gap_seconds)
    : gap_seconds_(std::max(gap_seconds, kStandingGapSeconds)),
      first_pause_seconds_(kFirstPauseAttempts * deadlines.connect_seconds),
      longest_pause_seconds_(
          std::max(first_pause_seconds_, kLongestPauseShare * deadlines.join_seconds)) {}

void LinkReports::note_standing(const std::string& member, const std::string& suspect,
                                bool is_heard, double now_seconds) {
  const auto [entry, is_new] =
      standing_.try_emplace(member, Standing{suspect, now_seconds, now_seconds});
  auto& link = entry->second;
  if (link.suspect != suspect || !is_heard) link = {suspect, now_seconds, now_seconds};
  link.newest_seconds = now_seconds;
}

std::vector<std::pair<BrokenLink, double>> LinkReports::standing_for_long(double now_seconds) {
  std::erase_if(standing_, [&](const auto& entry) {
    return now_seconds - entry.second.newest_seconds > gap_seconds_;
  });
  std::vector<std::pair<BrokenLink, double>> links;
  for (const auto& [member, link] : standing_) {
    if (link.newest_seconds - link.begin_seconds < kStandingSeconds) continue;
    links.push_back({{member, link.suspect}, link.begin_seconds});
  }
  return links;
}

void LinkReports::sever(const std::string& site, const std::string& peer, double now_seconds) {
  auto& entry = severed_[site];
  if (!peer.empty()) entry.peer = peer;
  entry.pause_seconds =
      std::clamp(2 * entry.pause_seconds, first_pause_seconds_, longest_pause_seconds_);
  entry.until_seconds = now_seconds + entry.pause_seconds;
}

std::optional<double> LinkReports::wait_seconds(const std::string& site, double now_seconds) const {
  const auto found = severed_.find(site);
  if (found == severed_.end() || now_seconds >= found->second.until_seconds) return std::nullopt;
  return found->second.until_seconds - now_seconds;
}

bool LinkReports::has_missed(const std::string& site, const std::string& member) const {
  const auto found = severed_.find(site);
  return found != severed_.end() && found->second.peer == member;
}

void LinkReports::forget_severed(const std::vector<std::string>& sites) {
  for (const auto& site : sites) severed_.erase(site);
}

}  // namespace farstep::wan
