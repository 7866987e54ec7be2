// The roster of a coordinator that does not know the run of the sites that come to it: its journal
// is gone, or another coordinator served them. Together the members know all that counts.
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "wan/roster/admission.h"
#include "wan/roster/roster.h"

namespace farstep {

namespace {

// The former coordinator may have begun generations that none of these sites knows. They must not
// have the numbers of this one's.
constexpr int64_t kGenerationGap = 1000;
// A member repeats its registration every heartbeat. What was queued for another coordinator comes
// all at once, and may be old.
constexpr double kRepetitionBeats = 0.5;

}  // namespace

std::optional<RefusedMessage> Roster::objection_to_return(const RegisterMessage& message) const {
  const auto left_behind = [](const std::string& reason) {
    return RefusedMessage{reason, true, true};
  };
  if (!message.memory) {
    return left_behind(fmt::format("site {} was no member of its run yet", message.site));
  }
  const auto names = site_names();
  const auto is_known = [&](const std::string& site) {
    return std::ranges::find(names, site) != names.end();
  };
  const auto& members = message.memory->members;
  if (!std::ranges::all_of(members, is_known) || message.memory->profiles.size() != names.size() ||
      std::set(members.begin(), members.end()).size() != members.size()) {
    return RefusedMessage{fmt::format("site {} is a member of another run, of the sites {}",
                                      message.site, fmt::join(members, ", ")),
                          true};
  }
  if (auto reason = objection_to_run(message, run_)) return RefusedMessage{*reason};
  return std::nullopt;
}

void Roster::gather(const std::string& connection, const RegisterMessage& message) {
  if (const auto refusal = objection_to_return(message)) {
    send(connection, *refusal);
    return;
  }
  learn_term(message.site, message.term);
  if (returning_.empty()) first_return_seconds_ = now_seconds_;
  auto [entry, is_new] = returning_.try_emplace(
      message.site, Returning{message, connection, now_seconds_, now_seconds_});
  auto& known = entry->second;
  const bool is_same = known.connection == connection &&
                       known.message.generation == message.generation &&
                       known.message.committed_round == message.committed_round &&
                       known.message.committed_fragment == message.committed_fragment;
  if (!is_same) known = {message, connection, now_seconds_, now_seconds_};
  known.heard_seconds = now_seconds_;
  take_over_if_possible();
  if (!has_begun()) send(connection, WaitingMessage{unreturned_members()});
}

bool Roster::has_returned(const std::string& site) const {
  const auto entry = returning_.find(site);
  return entry != returning_.end() && entry->second.heard_seconds - entry->second.first_seconds >=
                                          kRepetitionBeats * heartbeat_seconds_;
}

const RegisterMessage& Roster::newest_return() const {
  return std::ranges::max_element(returning_, {},
                                  [](const auto& entry) { return entry.second.message.generation; })
      ->second.message;
}

// A new process in a member's place shows that the old one has ended.
std::vector<std::string> Roster::unreturned_members() const {
  std::vector<std::string> missing;
  for (const auto& member : newest_return().memory->members) {
    const auto* seat = seat_of_site(member);
    if (!has_returned(member) && !is_present(*seat)) missing.push_back(member);
  }
  return missing;
}

void Roster::take_over_if_possible() {
  std::erase_if(returning_, [this](const auto& entry) {
    return now_seconds_ - entry.second.heard_seconds > suspect_seconds_;
  });
  if (has_begun() || returning_.empty()) return;
  const auto newest = newest_return();
  const auto& members = newest.memory->members;
  const auto num_members = std::ranges::count_if(
      members, [this](const std::string& member) { return has_returned(member); });
  const auto num_new = std::ranges::count_if(
      seats_, [this](const Seat& seat) { return is_present(seat) && !has_returned(seat.site); });
  const bool has_time = now_seconds_ - first_return_seconds_ <= lost_after_seconds_;
  if (has_time && !unreturned_members().empty()) return;
  if (num_members > 0 && num_members + num_new >= min_sites_) take_over(newest);
}

// All members' votes are needed for a commit, and a site applies only what is committed. So the
// newest commit that one of them knows is the newest that any site of the generation can have
// applied, unless it is lost now.
void Roster::take_over(const RegisterMessage& newest) {
  const auto missing = unreturned_members();
  progress_.members = newest.memory->members;
  std::erase_if(progress_.members, [this](const std::string& site) { return !has_returned(site); });
  progress_.generation = newest.generation + kGenerationGap - 1;
  progress_.takes_any_sync = true;  // the members know where they are
  for (auto& seat : seats_) {
    const auto entry = returning_.find(seat.site);
    const bool is_back = is_member(seat);
    seat = Seat(seat.site);
    seat.presence = is_back ? Presence::kPresent : Presence::kLost;
    seat.heard_seconds = now_seconds_;
    if (is_back) {
      seat.connection = entry->second.connection;
      seat.request = entry->second.message;
      learn(entry->second.message);
    }
  }
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    seats_[i].request.profile = newest.memory->profiles[i];
  }
  returning_.clear();
  open_sync(SyncId{});
  for (const auto& seat : seats_) {
    if (is_present(seat)) send(seat.connection, welcome(seat));
  }
  std::string reason = "another coordinator serves the run";
  if (!missing.empty())
    reason += fmt::format(", to which {} did not come", fmt::join(missing, ", "));
  progress_.lost_reason = reason;
  progress_.lost_generation = progress_.generation + 1;
  begin_generation(reason);
}

void Roster::learn(const RegisterMessage& message) {
  for (const auto& [key, value] : message.memory->values) {
    values_.try_emplace(key, Value{value, true});
  }
  if (message.committed_round < 0) return;
  const SyncId committed{message.committed_round, message.committed_fragment};
  if (!progress_.last_sync || *progress_.last_sync < committed) progress_.last_sync = committed;
}

}  // namespace farstep
