// The entry of every message and the tick of the clock. Each call leaves the roster consistent and
// returns what is to be sent; nothing here waits, so tests play any order of events.
#include "wan/roster/roster.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "trainer/base/error.h"
#include "wan/admission/admission.h"

namespace farstep::wan {

namespace {

// A site whose connection to another or to the coordinator broke, and that is silent for so many
// heartbeats, is lost. One heartbeat may come late; lost_after_seconds, at least 3 of them, is for
// silence alone.
constexpr double kSuspectBeats = 2.5;
// At least: a site whose connection broke makes another in this time.
constexpr double kReconnectSeconds = 1;

}  // namespace

Roster::Roster(ServedRun run, const Deadlines& deadlines)
    : run_(std::move(run)),
      lost_after_seconds_(deadlines.lost_after_seconds),
      suspect_seconds_(
          std::min(deadlines.lost_after_seconds,
                   std::max(kReconnectSeconds, kSuspectBeats * deadlines.heartbeat_seconds))),
      heartbeat_seconds_(deadlines.heartbeat_seconds),
      connect_seconds_(deadlines.connect_seconds),
      join_seconds_(deadlines.join_seconds),
      pause_seconds_(deadlines.pause_seconds),
      min_sites_(run_.least_sites()),
      seats_(run_.sites.begin(), run_.sites.end()),
      link_reports_(deadlines, suspect_seconds_),
      arrival_history_(deadlines.lost_after_seconds,
                       std::max(deadlines.lost_after_seconds, deadlines.laggard_seconds)),
      term_(run_.term_after(0)) {
  progress_.fragments = run_.fragments;
}

std::vector<Outgoing> Roster::receive(const std::string& connection, const SiteMessage& message,
                                      double now_seconds) {
  now_seconds_ = now_seconds;
  if (is_superseded_) return {};
  Seat* seat = seat_of_connection(connection);
  // Only seats that are present take messages. A site that counts as lost may still send, and must
  // hear that; unless the run has waited for it.
  if (seat != nullptr && seat->presence == Presence::kLost && is_member(*seat) && !verdict_) {
    come_back(*seat);
  }
  // Before the run begins a site only registers. One that sends more is of a run that this roster
  // does not know, and has its place there.
  const bool is_of_other_run = !has_begun() && !std::holds_alternative<RegisterMessage>(message) &&
                               !std::holds_alternative<LeaveMessage>(message);
  if (is_of_other_run && seat != nullptr) {
    note_neighbour(seat->site, connection);
    *seat = Seat(seat->site);
  }
  if (seat != nullptr && is_present(*seat) && !is_of_other_run) {
    hear(*seat);
    std::visit([&](const auto& content) { on(*seat, content); }, message);
  } else {
    on_stranger(connection, message);
  }
  return std::exchange(outbox_, {});
}

std::vector<Outgoing> Roster::tick(double now_seconds) {
  now_seconds_ = now_seconds;
  if (is_superseded_) return {};
  take_over_if_possible();
  begin_if_possible();
  end_long_pause();
  rest_if_all_are_silent();
  if (is_resting_) return std::exchange(outbox_, {});
  lose_silent_sites();
  leave_laggard_behind();
  if (has_begun() && !verdict_) {
    break_standing_links();
    if (trouble_ && do_all_live()) repeat_sync();
    start_sync_if_ready();
  }
  return std::exchange(outbox_, {});
}

bool Roster::is_over() const {
  if (!has_begun()) {
    return has_run_ended_ && now_seconds_ - stranger_seconds_ > lost_after_seconds_;
  }
  return std::ranges::none_of(seats_, [this](const Seat& seat) {
    const bool may_return = seat.presence == Presence::kLost && is_member(seat) && pause_;
    return is_present(seat) || (may_return && !verdict_);
  });
}

std::size_t Roster::num_kept() const {
  std::size_t num_kept = values_.size();
  for (const auto& [key, connections] : getters_) num_kept += connections.size();
  return num_kept;
}

// ---- joining ----

void Roster::on_stranger(const std::string& connection, const SiteMessage& message) {
  const auto* goodbye = std::get_if<LeaveMessage>(&message);
  stranger_seconds_ = now_seconds_;
  hear_neighbour(connection);
  if (std::holds_alternative<HeartbeatMessage>(message)) forget_settled(connection);
  has_run_ended_ |= goodbye != nullptr && goodbye->outcome == Outcome::kDone;
  if (const auto* request = std::get_if<RegisterMessage>(&message)) {
    admit(connection, *request);
  } else if (goodbye != nullptr) {
    std::erase_if(returning_,
                  [&](const auto& entry) { return entry.second.connection == connection; });
    on_broken(connection, now_seconds_);
    send(connection, GoodbyeMessage{});  // it has left already, and the answer was lost
  } else if (const Seat* seat = seat_of_connection(connection); seat != nullptr && has_begun()) {
    send(connection,
         UnknownSiteMessage{seat->presence == Presence::kLost
                                ? fmt::format("site {} counts as lost: {}", seat->site, seat->loss)
                                : fmt::format("site {} has left", seat->site)});
  } else {
    send(connection,
         UnknownSiteMessage{
             "it knows no such member of its run; it was restarted, or is another one"});
  }
}

void Roster::admit(const std::string& connection, const RegisterMessage& message) {
  has_run_ended_ = false;
  if (may_come_back(message.site)) {
    has_new_process_ = true;
    note_replaced(message.site);
    send(connection, WaitingMessage{awaited_sites()});
    return;
  }
  if (!has_begun() && message.generation > 0) {
    gather(connection, message);
    return;
  }
  if (const auto refusal = objection(message)) {
    send(connection, *refusal);
    return;
  }
  learn_term(message.site, message.term);
  if (is_superseded_) return;  // the term is another one's, and so is the new process
  make_seat(message.site);
  for (auto& seat : seats_) {
    if (seat.site != message.site) continue;
    if (has_begun()) {
      admit_newcomer(seat, connection, message);
      return;
    }
    seat.presence = Presence::kPresent;
    seat.connection = connection;
    seat.request = message;
    seat.heard_seconds = seat.first_seconds = now_seconds_;
  }
  // A run that lives goes on before another begins.
  take_over_if_possible();
  if (has_begun()) return;  // and the new process is a newcomer in it
  begin_if_possible();
  const Seat* seat = seat_of_connection(connection);
  if (!has_begun() && seat != nullptr && is_present(*seat)) let_wait(connection, message);
}

std::optional<RefusedMessage> Roster::objection(const RegisterMessage& message) const {
  const auto temporary = [](const std::string& reason) { return RefusedMessage{reason, true}; };
  const Seat* own = seat_of_site(message.site);
  if (!run_.names(message.site) && !run_.is_open()) {
    return RefusedMessage{fmt::format("site {} is not in the run, whose sites are {}", message.site,
                                      fmt::join(run_.sites, ", "))};
  }
  if (!is_site_name(message.site)) {
    return RefusedMessage{
        fmt::format("'{}' is no name of a site: use letters, digits, - and _", message.site)};
  }
  // Without this site the others cannot go on, so there is no run that it could come back to.
  const bool ends_with_first_loss = pause_seconds_ == 0 && min_sites_ == run_.most_sites();
  const auto* const way_on = "when the other sites have ended, start all of them with --resume";
  if (verdict_) return temporary(fmt::format("the run is over: {}; {}", failure(), way_on));
  if (is_over()) {
    return temporary(
        "the run is over: its sites have done all rounds and left; to train on, raise outer.rounds "
        "and start all of them with --resume");
  }
  if (has_begun() && ends_with_first_loss) {
    return temporary(
        fmt::format("the run has begun; site {} cannot join it; {}", message.site, way_on));
  }
  if (has_begun() && message.generation > 0) {
    return RefusedMessage{
        fmt::format("the others go on without site {}: {}", message.site,
                    own == nullptr || own->loss.empty() ? "it was away for too long" : own->loss),
        true, true};
  }
  if (const auto taken = num_places_taken(message.site); taken >= run_.most_sites()) {
    return temporary(
        fmt::format("the run has {} sites already, its max_sites: site {} can join when one of "
                    "them has left",
                    taken, message.site));
  }
  if (own != nullptr && own->presence == Presence::kPresent && !has_begun()) {
    return temporary(fmt::format(
        "site {} has registered already, by a process that was alive {:.1f} s ago; if that one is "
        "gone, try again in {:.1f} s",
        message.site, now_seconds_ - own->heard_seconds, lost_after_seconds_));
  }
  auto reason = objection_to_run(message, run_.config);
  if (!reason) reason = objection_to_states(message);
  for (const auto& seat : seats_) {
    if (reason) break;
    if (seat.presence != Presence::kPresent) continue;
    reason = objection_to_facts(message, seat.request);
    // A newcomer takes over the others' state, whatever its own is.
    if (!reason && !has_begun()) reason = objection_to_resume(message, seat.request);
  }
  if (!reason) return std::nullopt;
  return RefusedMessage{*reason};
}

void Roster::open_sync(const SyncId& id) {
  sync_.emplace(progress_.generation, id, progress_.members, run_.judge);
}

Welcome Roster::welcome(const Seat& seat) const {
  const bool is_newcomer = !is_member(seat);
  const auto sites = is_newcomer ? members_with(seat) : progress_.members;
  return {.run = run_.config,
          .site_id = std::ranges::find(sites, seat.site) - sites.begin(),
          .sites = sites,
          .generation = progress_.generation,
          .start_syncs = progress_.start_syncs,
          .first_sites = progress_.first_sites,
          .min_sites = min_sites_,
          .is_newcomer = is_newcomer,
          .left = left_states_};
}

void Roster::on(Seat& seat, const RegisterMessage& message) {
  learn_term(message.site, message.term);
  if (is_superseded_) return;
  if (message.site != seat.site) {
    send(seat.connection,
         RefusedMessage{fmt::format("this process is site {} already", seat.site)});
  } else if (has_begun()) {
    send(seat.connection, welcome(seat));
  } else {
    seat.request = message;
    take_over_if_possible();
    if (!has_begun()) let_wait(seat.connection, message);
  }
}

// ---- generations ----

void Roster::begin_generation(const std::string& change) {
  trouble_.reset();
  link_reports_.forget_standing();
  ++progress_.generation;
  progress_.newest_change = fmt::format("{}; generation {} goes on with {}", change,
                                        progress_.generation, fmt::join(progress_.members, ", "));
  // The members connect anew, by keys of this generation. Who waits still asks again.
  std::erase_if(values_, [](const auto& entry) { return !entry.second.is_of_start; });
  getters_.clear();
  // Nobody has applied the open sync, since it is not committed. So it can begin anew.
  open_sync(sync_->id());
  forget_lost_donors();
  arrival_history_.restart();
  send_to_all(view());
  ask_donors();
}

// The first generation has no view to miss.
bool Roster::is_outdated(int64_t generation) const {
  return generation < progress_.generation && !progress_.newest_change.empty();
}

ViewMessage Roster::view() const {
  ViewMessage message{.generation = progress_.generation,
                      .sites = progress_.members,
                      .lost = progress_.lost_site,
                      .reason = progress_.lost_reason,
                      .lost_generation = progress_.lost_generation,
                      .joined = progress_.joined_site};
  if (progress_.last_sync) {
    message.committed_round = progress_.last_sync->round;
    message.committed_fragment = progress_.last_sync->fragment;
  }
  return message;
}

void Roster::end_early(const CoordinatorMessage& verdict, const std::string& failure) {
  verdict_ = verdict;
  progress_.failure = failure;
  send_to_all(verdict);
}

// ---- messages ----

void Roster::send(const std::string& connection, CoordinatorMessage message) {
  // Also a verdict that an earlier term has reached.
  std::visit(
      [this](auto& content) {
        if constexpr (requires { content.term; }) content.term = term_;
      },
      message);
  outbox_.push_back({connection, std::move(message)});
}

void Roster::send_to_all(const CoordinatorMessage& message) {
  for (const auto& seat : seats_) {
    if (seat.presence == Presence::kPresent) send(seat.connection, message);
  }
}

// A newcomer whose arrival is on its way would take the members' signal for the answer.
void Roster::send_to_members(const CoordinatorMessage& message) {
  for (const auto& seat : seats_) {
    if (is_present(seat) && is_member(seat)) send(seat.connection, message);
  }
}

}  // namespace farstep::wan
