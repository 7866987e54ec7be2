// The roster's part in taking in sites of a run that has begun.
#include <algorithm>
#include <utility>

#include "wan/roster/roster.h"

namespace farstep {

namespace {

// How much longer than its last transfer a newcomer that was late may take the next time.
constexpr double kPatience = 1.5;

}  // namespace

void Roster::admit_newcomer(Seat& seat, const std::string& connection,
                            const RegisterMessage& message) {
  if (is_present(seat)) {
    // Mostly a process that has died unnoticed, and this one was started in its place.
    if (connection != seat.connection) {
      seat.is_suspected = true;
      send(connection, WaitingMessage{{message.site + " (an earlier process of it)"}});
    }
    return;
  }
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
  seat.is_suspected = false;
  seat.fetch.reset();
  seat.handover.reset();
  seat.fetch_seconds = 0;
}

void Roster::on(Seat& seat, const FetchMessage& message) {
  if (verdict_) {
    send(seat.connection, *verdict_);
    return;
  }
  if (is_member(seat)) {
    if (seat.fetch == message) return;  // a late repetition
    // The round that it attended failed at this site alone. The others must not wait for it there.
    make_newcomer(seat, "it takes the run's state again");
    if (verdict_) return;
  }
  if (seat.fetch != message) {
    seat.fetch = message;
    seat.handover.reset();
  } else if (seat.handover && seat.is_offered) {  // the answer was lost
    send(seat.connection, *seat.handover);
  }
}

// Donors in the order of their uplinks, the fastest first. Several newcomers have several. A site
// without work only attends the round, and one that leaves is gone after it: neither hands over.
std::vector<Newcomer> Roster::newcomers_of_sync() const {
  const auto& id = sync_->id();
  if (id == kMeasuringSync || id.fragment + 1 != progress_.fragments) return {};
  std::vector<std::pair<double, std::string>> donors;
  for (const auto& member : progress_.members) {
    const auto& contribution = sync_->arrival(member).contribution;
    if (!contribution.goes_on()) continue;
    donors.emplace_back(-contribution.timing.uplink_bits_per_second, member);
  }
  if (donors.empty()) return {};  // the newcomers get the state after the next round
  std::ranges::stable_sort(donors, {}, [](const auto& donor) { return donor.first; });
  std::vector<Newcomer> newcomers;
  for (const auto& seat : seats_) {
    if (!is_present(seat) || is_member(seat) || !seat.fetch || seat.handover) continue;
    newcomers.push_back({.site = seat.site,
                         .request = *seat.fetch,
                         .donor = donors[newcomers.size() % donors.size()].second});
  }
  return newcomers;
}

void Roster::prepare_handovers(const OpenSync& sync) {
  for (const auto& newcomer : sync.newcomers()) {
    for (auto& seat : seats_) {
      if (seat.site != newcomer.site || seat.fetch != newcomer.request) continue;
      seat.handover = HandoverMessage{.token = newcomer.request.token,
                                      .donor = newcomer.donor,
                                      .round = sync.id().round,
                                      .theta_hash = sync.voted_hash(),
                                      .endpoint = {}};
      seat.is_offered = false;
    }
  }
}

// The donor may apply the sync much later than it is committed, at the end of a long round. The
// newcomer waits for bytes only from the offer on, so that its deadlines can be short.
void Roster::on(Seat& seat, const OfferMessage& message) {
  send(seat.connection, StoredMessage{message.token});
  for (auto& newcomer : seats_) {
    const auto& handover = newcomer.handover;
    const bool is_meant = handover && handover->token == message.token && !newcomer.is_offered;
    if (!is_meant || handover->donor != seat.site || !is_present(newcomer)) continue;
    newcomer.handover->endpoint = message.endpoint;
    newcomer.is_offered = true;
    newcomer.handover_seconds = now_seconds_;
    send(newcomer.connection, *newcomer.handover);
  }
}

void Roster::forget_lost_donors() {
  for (auto& seat : seats_) {
    if (!seat.handover || seat.is_offered) continue;
    const auto& members = progress_.members;
    if (std::ranges::find(members, seat.handover->donor) == members.end()) seat.handover.reset();
  }
}

// Rounds may be shorter than the state's transfer, and with eager updates all arrive when it has
// only begun. Without this wait the newcomer would be late each time. The offer may come a little
// later than the donor's arrival.
bool Roster::waits_for_newcomer() const {
  return std::ranges::any_of(seats_, [&](const Seat& seat) {
    const bool comes = is_present(seat) && !is_member(seat) && seat.handover &&
                       sync_->id() == SyncId{seat.handover->round + 1, 0};
    if (!comes || seat.fetch_seconds == 0) return false;
    return now_seconds_ < (seat.is_offered ? seat.handover_seconds + kPatience * seat.fetch_seconds
                                           : all_arrived_seconds_ + heartbeat_seconds_);
  });
}

// Nothing has been exchanged in the sync, so all can begin it in a generation with the newcomer.
void Roster::welcome_into_sync(Seat& seat, const ArriveMessage& message) {
  const SyncId id{message.round, message.fragment};
  if (verdict_) {
    send(seat.connection, *verdict_);
  } else if (is_outdated(message.generation)) {
    send(seat.connection, view());
  } else if (id != sync_->id() || sync_->has_started()) {
    if (seat.handover) seat.fetch_seconds = now_seconds_ - seat.handover_seconds;
    send(seat.connection, LateMessage{message.round, message.fragment});
  } else {
    progress_.members = members_with(seat);
    progress_.joined_site = seat.site;
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

}  // namespace farstep
