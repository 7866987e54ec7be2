// The roster of a coordinator that does not know the run of the sites that come to it: its journal
// is gone, or another coordinator served them. Together the members know all that counts.
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "wan/admission/admission.h"
#include "wan/roster/roster.h"

namespace farstep::wan {

namespace {

// The former coordinator may have begun generations that none of these sites knows. And each term
// has its own, as several coordinators may go on from the same one, or from an old one.
constexpr int64_t kGenerationGap = 1000;
// A coordinator claims a run so much later than the one before it in the list. Two that claim at
// once would take turns in raising their terms.
constexpr double kTurnBeats = 3;
// A member repeats its registration every heartbeat. What was queued while this coordinator was
// away comes all at once, and the member may be elsewhere by now.
constexpr double kRepetitionBeats = 0.5;
// A new process registers at all coordinators. The one that serves the run, if there is one, takes
// it in within this time.
constexpr double kSettlingBeats = 3;
// A coordinator that serves the run loses a process that has ended, takes in the new one, and that
// one says so: within so many heartbeats.
constexpr double kAdmissionBeats = 5;

}  // namespace

std::optional<RefusedMessage> Roster::objection_to_return(const RegisterMessage& message) const {
  const auto is_known = [this](const std::string& site) {
    return run_.names(site) || (run_.is_open() && is_site_name(site));
  };
  const std::vector<std::string> only_itself{message.site};
  const auto& members = message.memory ? message.memory->members : only_itself;
  if (!std::ranges::all_of(members, is_known) || std::ssize(members) > run_.most_sites() ||
      std::set(members.begin(), members.end()).size() != members.size()) {
    return RefusedMessage{fmt::format("site {} is a member of another run, of the sites {}",
                                      message.site, fmt::join(members, ", ")),
                          true};
  }
  if (auto reason = objection_to_run(message, run_.config)) return RefusedMessage{*reason};
  return std::nullopt;
}

void Roster::gather(const std::string& connection, const RegisterMessage& message) {
  learn_term(message.site, message.term);
  if (const auto refusal = objection_to_return(message)) {
    send(connection, *refusal);
    return;
  }
  auto [entry, is_new] = returning_.try_emplace(
      message.site, Returning{message, connection, now_seconds_, now_seconds_});
  auto& known = entry->second;
  if (known.connection != connection) known.first_seconds = now_seconds_;
  known.message = message;
  known.connection = connection;
  known.heard_seconds = now_seconds_;
  known.beats = 0;
  note_neighbour(message.site, connection);
  take_over_if_possible();
  if (!has_begun()) let_wait(connection, message);
}

// What died long ago no longer counts, so that names of strangers are not kept.
void Roster::note_neighbour(const std::string& site, const std::string& connection) {
  const double memory_seconds = lost_after_seconds_ + pause_seconds_;
  std::erase_if(neighbours_, [&](const auto& entry) {
    return now_seconds_ - entry.second.heard_seconds > memory_seconds;
  });
  neighbours_.insert_or_assign(site, Neighbour{connection, now_seconds_});
}

void Roster::hear_neighbour(const std::string& connection) {
  for (auto& [site, neighbour] : neighbours_) {
    if (neighbour.connection == connection) neighbour = {connection, now_seconds_};
  }
}

// A member that the others have lost may ask for long, and knows only an old state. It must not go
// on with a process that has just been started, and is about to join the others.
bool Roster::is_given_up(const std::string& site) const {
  if (now_seconds_ - enough_seconds_ <= kAdmissionBeats * heartbeat_seconds_) return false;
  const auto found = neighbours_.find(site);
  if (found == neighbours_.end()) return now_seconds_ - enough_seconds_ > lost_after_seconds_;
  const auto& [connection, heard_seconds, is_suspected] = found->second;
  // One that lives may take part elsewhere, and does not come for all its signs of life.
  const double silent_since = std::min(heard_seconds, enough_seconds_);
  return now_seconds_ - silent_since > lost_after_seconds_ ||
         (is_suspected && !is_recent(heard_seconds));
}

void Roster::forget_settled(const std::string& connection) {
  for (auto& [site, entry] : returning_) {
    if (entry.connection == connection) ++entry.beats;
  }
  std::erase_if(returning_, [](const auto& entry) { return entry.second.beats > 1; });
}

void Roster::let_wait(const std::string& connection, const RegisterMessage& message) {
  if (is_claiming_ && !has_promised(message)) {
    send(connection, ClaimMessage{});
  } else {
    send(connection, WaitingMessage{returning_.empty() ? missing_sites() : unreturned_members()});
  }
}

bool Roster::has_promised(const RegisterMessage& message) const {
  return is_claiming_ && message.term == term_;
}

std::vector<Roster::Candidate> Roster::candidates() const {
  std::vector<Candidate> found;
  for (const auto& [site, entry] : returning_) {
    const double seconds = entry.heard_seconds - entry.first_seconds;
    const bool is_repeated = seconds >= kRepetitionBeats * heartbeat_seconds_;
    if (!is_repeated && !has_promised(entry.message)) continue;
    found.push_back({entry.connection, &entry.message});
  }
  for (const auto& seat : seats_) {
    if (!is_present(seat) || !is_recent(seat.heard_seconds) || returning_.contains(seat.site)) {
      continue;
    }
    const bool has_settled =
        !run_.place || now_seconds_ - seat.first_seconds >= kSettlingBeats * heartbeat_seconds_;
    if (!has_settled && !has_promised(seat.request)) continue;
    found.push_back({seat.connection, &seat.request});
  }
  return found;
}

const RegisterMessage* Roster::newest_return() const {
  const RegisterMessage* newest = nullptr;
  for (const auto& [site, entry] : returning_) {
    const auto& message = entry.message;
    if (!message.memory) continue;  // it was a newcomer still
    if (newest == nullptr || message.generation > newest->generation) newest = &message;
  }
  return newest;
}

// A new process in a member's place shows that the old one has ended.
std::vector<std::string> Roster::unreturned_members() const {
  const auto* newest = newest_return();
  auto missing = newest == nullptr ? run_.sites : newest->memory->members;
  for (const auto& candidate : candidates()) std::erase(missing, candidate.message->site);
  return missing;
}

// Sites that promise are lost to every other coordinator. So they are asked only when there are
// enough of them to go on.
void Roster::take_over_if_possible() {
  std::erase_if(returning_,
                [this](const auto& entry) { return !is_recent(entry.second.heard_seconds); });
  dismiss_newcomers_of_lost_run();
  const auto* newest = newest_return();
  const auto sites = candidates();
  if (has_begun() || newest == nullptr || std::ssize(sites) < min_sites_) {
    is_claiming_ = false;
    if (!is_recent(last_enough_seconds_)) enough_seconds_ = now_seconds_;
    return;
  }
  last_enough_seconds_ = now_seconds_;
  const double waited_seconds = now_seconds_ - enough_seconds_;
  const auto turn = static_cast<double>(run_.place.value_or(0));
  const bool is_its_turn = waited_seconds >= turn * kTurnBeats * heartbeat_seconds_;
  const bool are_others_lost = std::ranges::all_of(
      unreturned_members(), [this](const std::string& site) { return is_given_up(site); });
  if (is_claiming_) {
    // Until it promises, one that has just come may still hear of a commit elsewhere.
    const bool have_all_promised =
        std::ranges::all_of(sites,
                            [this](const auto& site) { return has_promised(*site.message); }) &&
        std::ranges::all_of(
            returning_, [this](const auto& entry) { return has_promised(entry.second.message); });
    if (have_all_promised) take_over(RegisterMessage(*newest));
  } else if (is_its_turn && are_others_lost) {
    is_claiming_ = true;
    for (const auto& site : sites) send(site.connection, ClaimMessage{});
  }
}

// If the processes of all sites ask here, and none is a member, then each member's has ended. The
// others cannot begin a run while a newcomer still waits for the state of the old one. In an open
// run a member may be of a site that is not named.
void Roster::dismiss_newcomers_of_lost_run() {
  if (has_begun() || run_.is_open() || returning_.empty() || newest_return() != nullptr) return;
  for (const auto& seat : seats_) {
    if (!is_present(seat) && !returning_.contains(seat.site)) return;
  }
  for (const auto& [site, entry] : returning_) {
    send(entry.connection, RefusedMessage{"no process is left that knows the run", true, true});
  }
  returning_.clear();
}

// All members' votes are needed for a commit, and a site applies only what is committed. So the
// newest commit that one of them knows is the newest that any site of the generation can have
// applied, unless it is lost now.
void Roster::take_over(const RegisterMessage& newest) {
  const auto missing = unreturned_members();
  progress_.first_sites = newest.memory->first_sites;
  progress_.members = newest.memory->members;
  for (const auto& site : newest.memory->members) make_seat(site);
  std::erase_if(progress_.members, [this](const std::string& site) {
    const auto entry = returning_.find(site);
    return entry == returning_.end() || !entry->second.message.memory;
  });
  int64_t known = newest.generation;  // newcomers may know a newer one, whose members have gone
  for (const auto& [site, entry] : returning_) known = std::max(known, entry.message.generation);
  progress_.generation = std::max(known + kGenerationGap, kGenerationGap * term_) - 1;
  progress_.takes_any_sync = true;  // the members know where they are
  std::vector<Seat> newcomers;
  for (auto& seat : seats_) {
    const auto entry = returning_.find(seat.site);
    const bool is_back = is_member(seat);
    if (is_present(seat) && !is_back) newcomers.push_back(seat);
    seat = Seat(seat.site);
    seat.presence = is_back ? Presence::kPresent : Presence::kLost;
    seat.heard_seconds = now_seconds_;
    if (is_back) {
      seat.connection = entry->second.connection;
      seat.request = entry->second.message;
      learn(entry->second.message);
    }
  }
  returning_.clear();
  is_claiming_ = false;
  open_sync(SyncId{});
  for (const auto& seat : seats_) {
    if (is_present(seat)) send(seat.connection, welcome(seat));
  }
  std::string reason = "the run has a new coordinator";
  if (!missing.empty()) {
    reason += fmt::format(", to which {} did not come", fmt::join(missing, ", "));
  }
  progress_.lost_reason = reason;
  progress_.lost_generation = progress_.generation + 1;
  begin_generation(reason);
  // All newcomers get a seat before settle(): without the last one the run might pause.
  for (const auto& newcomer : newcomers) {
    for (auto& seat : seats_) {
      if (seat.site == newcomer.site) seat_newcomer(seat, newcomer.connection, newcomer.request);
    }
  }
  settle();
  for (const auto& newcomer : newcomers) {
    send(newcomer.connection, welcome(*seat_of_site(newcomer.site)));
  }
}

void Roster::learn(const RegisterMessage& message) {
  for (const auto& [key, value] : message.memory->values) {
    values_.try_emplace(key, Value{value, true});
  }
  if (message.committed_round < 0) return;
  const SyncId committed{message.committed_round, message.committed_fragment};
  if (!progress_.last_sync || *progress_.last_sync < committed) progress_.last_sync = committed;
}

}  // namespace farstep::wan
