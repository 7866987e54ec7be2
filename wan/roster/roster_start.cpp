// The roster when a run begins: with which sites, and with which state of theirs.
#include <algorithm>

#include "wan/roster/roster.h"

namespace farstep::wan {

namespace {

// Of join_seconds, the wait for sites without which the run can begin. Those that are there give up
// at its end.
constexpr double kBeginShare = 0.9;

}  // namespace

std::vector<RegisterMessage> Roster::requests_of_present() const {
  std::vector<RegisterMessage> requests;
  for (const auto& seat : seats_) {
    if (is_present(seat)) requests.push_back(seat.request);
  }
  return requests;
}

bool Roster::have_waited_long() const {
  return std::ranges::any_of(seats_, [this](const Seat& seat) {
    return is_present(seat) && now_seconds_ - seat.first_seconds >= kBeginShare * join_seconds_;
  });
}

// Those that are away could otherwise begin another run with the same right: anew, or from a state
// of theirs. If nobody knows who took part in a state, all that the run names may have.
bool Roster::has_majority(const CommonStart& start) const {
  if (!start.state.members.empty()) return start.has_majority;
  const auto num_named =
      std::ranges::count_if(start.members, [this](const auto& site) { return run_.names(site); });
  return 2 * num_named > std::ssize(run_.sites) || run_.sites.empty();
}

void Roster::begin_if_possible() {
  const bool is_first = run_.place.value_or(0) == 0;  // a stand-by begins no run
  if (has_begun() || !is_first || !returning_.empty()) return;
  const auto requests = requests_of_present();
  const bool are_all_there = missing_sites().empty();
  if (!are_all_there && (requests.empty() || std::ssize(requests) < min_sites_)) return;
  const auto start = common_start_of(requests, run_);
  if (start && (are_all_there || start->has_newest_members ||
                (have_waited_long() && has_majority(*start)))) {
    begin(*start);
  } else if (!start && are_all_there) {
    send_to_all(RefusedMessage{no_common_start_text(requests)});
    for (auto& seat : seats_) seat = Seat(seat.site);  // for another try
  }
}

void Roster::begin(const CommonStart& start) {
  drop_spare_seats();
  for (const auto& seat : seats_) {
    if (std::ranges::count(start.members, seat.site) == 0) continue;
    progress_.members.push_back(seat.site);
    progress_.first_sites.push_back({seat.site, seat.request.profile});
  }
  left_states_ = start.left;
  progress_.start_syncs = start.state.syncs;
  // Only the sites' checkpoints tell which sync of the round is next.
  progress_.takes_any_sync = progress_.start_syncs > 0;
  progress_.may_measure = !progress_.takes_any_sync;
  open_sync(SyncId{.round = start.state.round.value_or(0) + 1});
  // Newcomers need not wait for the end of a round: the members have the state after this one.
  if (start.state.round.value_or(0) > 0) {
    progress_.last_round = {*start.state.round, start.state.theta_hash, progress_.members};
  }
  for (const auto& seat : seats_) {
    if (is_present(seat)) send(seat.connection, welcome(seat));
  }
}

}  // namespace farstep::wan
