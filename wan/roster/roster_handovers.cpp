// The roster's part in handing the run's state to newcomers: which member does it, which state it
// is, and how long the others wait for it.
#include <algorithm>
#include <utility>

#include "wan/roster/roster.h"

namespace farstep::wan {

namespace {

// How much longer than expected a newcomer's transfer may take: than its last one, if that came too
// late, or else than the donor expects.
constexpr double kPatience = 1.5;

}  // namespace

bool Roster::wants_state(const Seat& seat) const {
  return is_present(seat) && !is_member(seat) && seat.fetch && !seat.handover;
}

const std::string& Roster::donor_for(const std::string& newcomer,
                                     const std::vector<std::string>& donors,
                                     std::size_t turn) const {
  const auto& first = donors[turn % donors.size()];
  return link_reports_.has_missed(newcomer, first) ? donors[(turn + 1) % donors.size()] : first;
}

// All members share this state until the first sync of the round under way begins. It comes a round
// sooner than the one after that round. A member that has arrived is about to lose it.
void Roster::ask_donors() {
  const auto& last = progress_.last_round;
  if (!last || verdict_ || sync_->has_started()) return;
  std::vector<std::string> donors;
  for (const auto& site : last->donors) {
    const Seat* seat = seat_of_site(site);
    const bool is_there = seat != nullptr && is_present(*seat) && is_member(*seat);
    if (is_there && !sync_->has_arrived(site)) donors.push_back(site);
  }
  if (donors.empty()) return;
  auto turn = static_cast<std::size_t>(
      std::ranges::count_if(seats_, [](const Seat& seat) { return seat.handover.has_value(); }));
  for (auto& seat : seats_) {
    if (!wants_state(seat)) continue;
    seat.handover = HandoverMessage{.token = seat.fetch->token,
                                    .donor = donor_for(seat.site, donors, turn++),
                                    .round = last->round,
                                    .theta_hash = last->theta_hash,
                                    .endpoint = {}};
    seat.is_offered = false;
    seat.is_asked = true;
    ask_donor_of(seat);
  }
}

void Roster::ask_donor_of(const Seat& newcomer) {
  const auto& handover = *newcomer.handover;
  const Seat* donor = seat_of_site(handover.donor);
  if (donor == nullptr || !is_present(*donor)) return;
  send(donor->connection,
       DonateMessage{
           .round = handover.round,
           .newcomer = {.site = newcomer.site, .request = *newcomer.fetch, .donor = handover.donor},
           .seconds = newcomer.fetch_seconds});
}

// Several newcomers have several donors.
std::vector<Newcomer> Roster::newcomers_of_sync() const {
  const auto& id = sync_->id();
  if (id == kMeasuringSync || id.fragment + 1 != progress_.fragments) return {};
  const auto donors = sync_->donors();
  if (donors.empty()) return {};  // the newcomers get the state after the next round
  std::vector<Newcomer> newcomers;
  for (const auto& seat : seats_) {
    if (!wants_state(seat)) continue;
    newcomers.push_back({.site = seat.site,
                         .request = *seat.fetch,
                         .donor = donor_for(seat.site, donors, newcomers.size())});
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
      seat.is_offered = seat.is_asked = false;
    }
  }
}

// The donor may apply the sync much later than it is committed, at the end of a long round. The
// newcomer waits for bytes only from the offer on, so that its deadlines can be short.
void Roster::on(Seat& seat, const OfferMessage& message) {
  for (auto& newcomer : seats_) {
    auto& handover = newcomer.handover;
    const bool is_meant = handover && handover->token == message.token &&
                          handover->round == message.round && handover->donor == seat.site;
    if (!is_meant || !is_present(newcomer)) continue;
    send(seat.connection, StoredMessage{message.token});
    if (std::exchange(newcomer.is_offered, true)) return;  // the answer was lost
    handover->endpoint = message.endpoint;
    newcomer.handover_seconds = now_seconds_;
    newcomer.expected_seconds = message.seconds;
    send(newcomer.connection, *handover);
    return;
  }
  send(seat.connection, UnwantedMessage{message.token, message.round});
}

void Roster::forget_lost_donors() {
  for (auto& seat : seats_) {
    if (!seat.handover || seat.is_offered) continue;
    const auto& members = progress_.members;
    if (std::ranges::find(members, seat.handover->donor) == members.end()) seat.handover.reset();
  }
}

// The sync that begins changes theta_global, so a state that nobody has offered would come too
// late. The newcomer gets the state after the sync's round instead.
void Roster::forget_late_states() {
  for (auto& seat : seats_) {
    if (!seat.is_offered) seat.handover.reset();
  }
}

// Rounds may be shorter than the state's transfer, and with eager updates all arrive when it has
// only begun. Without this wait the newcomer would be late each time. The offer may come a little
// later than the donor's arrival, unless it was asked in mid-round: then it offers before or never.
bool Roster::waits_for_newcomer() const {
  return std::ranges::any_of(seats_, [&](const Seat& seat) {
    const bool comes = is_present(seat) && !is_member(seat) && seat.handover &&
                       sync_->id() == SyncId{seat.handover->round + 1, 0};
    if (!comes) return false;
    if (!seat.is_offered) {
      return !seat.is_asked && now_seconds_ < all_arrived_seconds_ + heartbeat_seconds_;
    }
    const double seconds = seat.fetch_seconds > 0 ? seat.fetch_seconds : seat.expected_seconds;
    return now_seconds_ < seat.handover_seconds + kPatience * seconds;
  });
}

}  // namespace farstep::wan
