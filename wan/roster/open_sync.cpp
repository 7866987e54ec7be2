// The meeting of one sync: who has arrived, and who has voted for what. It knows no order of time,
// only sets, so that a message that comes twice changes nothing.
#include "wan/roster/open_sync.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <iterator>

#include "trainer/base/error.h"

namespace farstep::wan {

namespace {

// A fault changes the hash of few sites, so the majority counts as right.
template <typename Message>
std::string differing(const std::map<std::string, Message>& messages) {
  std::map<std::string, std::size_t> counts;
  for (const auto& [site, message] : messages) ++counts[message.theta_hash];
  if (counts.size() <= 1) return "";
  std::vector<std::string> named;
  for (const auto& [site, message] : messages) {
    if (2 * counts[message.theta_hash] > messages.size()) continue;
    named.push_back(fmt::format("{} ({})", site, message.theta_hash));
  }
  return fmt::format("{}", fmt::join(named, ", "));
}

}  // namespace

OpenSync::OpenSync(int64_t generation, const SyncId& id, std::vector<std::string> sites,
                   DeltaJudge judge)
    : generation_(generation), id_(id), sites_(std::move(sites)), judge_(std::move(judge)) {}

void OpenSync::arrive(const std::string& site, const ArriveMessage& message) {
  // A repeated message does not replace the first: emplace keeps it.
  const bool is_new = arrivals_.emplace(site, message).second;
  if (is_new && all_arrived()) outliers_ = judge_(sites_, contributions());
}

std::vector<Contribution> OpenSync::contributions() const {
  std::vector<Contribution> contributions;
  for (const auto& site : sites_) contributions.push_back(arrivals_.at(site).contribution);
  return contributions;
}

void OpenSync::vote(const std::string& site, const VoteMessage& message) {
  votes_.emplace(site, message);
}

std::string OpenSync::differing_arrivals() const {
  return differing(arrivals_);
}

std::string OpenSync::differing_votes() const {
  return differing(votes_);
}

void OpenSync::start(std::vector<Newcomer> newcomers) {
  FARSTEP_CHECK(all_arrived(), "sites of round {}, fragment {} have not arrived", id_.round,
                id_.fragment);
  newcomers_ = std::move(newcomers);
  has_started_ = true;
}

// A site without work only attends the round, and one that leaves is gone after it: neither hands
// over.
std::vector<std::string> OpenSync::donors() const {
  std::vector<std::string> donors;
  const auto contribution_of = [this](const std::string& site) -> const Contribution& {
    return arrivals_.at(site).contribution;
  };
  std::ranges::copy_if(sites_, std::back_inserter(donors), [&](const auto& site) {
    return contribution_of(site).goes_on() && !leaves_out(outliers_, site);
  });
  std::ranges::stable_sort(donors, std::ranges::greater(), [&](const auto& site) {
    return contribution_of(site).timing.uplink_bits_per_second;
  });
  return donors;
}

Go OpenSync::go() const {
  FARSTEP_CHECK(has_started_, "round {}, fragment {} has not started", id_.round, id_.fragment);
  return {.generation = generation_,
          .round = id_.round,
          .fragment = id_.fragment,
          .contributions = contributions(),
          .sites = sites_,
          .newcomers = newcomers_,
          .outliers = outliers_};
}

}  // namespace farstep::wan
