// The roster's part in taking in sites of a run that has begun.
#include <fmt/format.h>

#include <cmath>

#include "wan/roster/roster.h"

namespace farstep::wan {

// A run that pauses has nothing to lose.
bool Roster::lets_severed_wait(const std::string& connection, const std::string& site) {
  const auto wait_seconds = link_reports_.wait_seconds(site, now_seconds_);
  if (!wait_seconds || pause_) return false;
  send(connection, WaitingMessage{{fmt::format("{} s more, as site {} did not reach a member",
                                               std::ceil(*wait_seconds), site)}});
  return true;
}

void Roster::admit_newcomer(Seat& seat, const std::string& connection,
                            const RegisterMessage& message) {
  if (is_present(seat)) {
    // Mostly a process that has died unnoticed, and this one was started in its place.
    if (connection != seat.connection) {
      seat.is_replaced = true;
      send(connection, WaitingMessage{{message.site + " (an earlier process of it)"}});
    }
    return;
  }
  if (lets_severed_wait(connection, message.site)) return;
  if (is_member(seat)) {  // this process has nothing of its state
    make_newcomer(seat, "it was started again");
    if (const auto refusal = objection(message)) {
      send(connection, *refusal);
      return;
    }
  }
  seat_newcomer(seat, connection, message);
  settle();
  send(connection, welcome(seat));
}

void Roster::seat_newcomer(Seat& seat, const std::string& connection,
                           const RegisterMessage& message) {
  seat.presence = Presence::kPresent;
  seat.connection = connection;
  seat.request = message;
  seat.heartbeat = {};
  seat.metrics.reset();
  seat.heard_seconds = now_seconds_;
  seat.is_suspected = seat.is_replaced = false;
  seat.fetch.reset();
  seat.handover.reset();
  seat.fetch_seconds = 0;
  seat.is_on_trial = false;
}

void Roster::on(Seat& seat, const FetchMessage& message) {
  if (verdict_) {
    send(seat.connection, *verdict_);
    return;
  }
  if (is_member(seat)) {
    if (seat.fetch == message) return;  // a late repetition
    // The round that it attended failed at this site alone. The others must not wait for it there.
    seat.fetch.reset();
    make_newcomer(seat, "it takes the run's state again");
    if (verdict_) return;
  }
  if (seat.fetch != message) {
    seat.fetch = message;
    seat.handover.reset();
  }
  // A repeated request shows that the answer, or the question to the donor, may be lost.
  if (!seat.handover) {
    ask_donors();
  } else if (seat.is_offered) {
    send(seat.connection, *seat.handover);
  } else if (seat.is_asked) {
    ask_donor_of(seat);
  }
}

// Nothing has been exchanged in the sync, so all can begin it in a generation with the newcomer.
void Roster::welcome_into_sync(Seat& seat, const ArriveMessage& message) {
  const SyncId id{message.round, message.fragment};
  if (verdict_) {
    send(seat.connection, *verdict_);
  } else if (is_outdated(message.generation)) {
    send(seat.connection, view());
  } else if (id != sync_->id() || sync_->has_started()) {
    // If not, a newer state has been handed over meanwhile, and this message is a late repetition.
    const bool is_of_handover =
        seat.handover && seat.is_offered && SyncId{seat.handover->round + 1, 0} == id;
    if (is_of_handover) seat.fetch_seconds = now_seconds_ - seat.handover_seconds;
    send(seat.connection, LateMessage{message.round, message.fragment});
  } else {
    progress_.members = members_with(seat);
    progress_.joined_site = seat.site;
    seat.is_on_trial = true;
    seat.handover.reset();
    begin_generation(fmt::format("site {} has joined", seat.site));
    settle();  // it may be the one for which the run has waited
  }
}

void Roster::dismiss_newcomers() {
  if (has_present_member()) return;
  for (auto& seat : seats_) {
    if (!is_present(seat)) continue;
    seat.presence = Presence::kLost;
    send(seat.connection, PeerLostMessage{seat.site, "the run is over: all members have left"});
  }
}

}  // namespace farstep::wan
