// The roster beyond its process: its state, and how it goes on from one.
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "trainer/base/error.h"
#include "wan/roster/roster.h"

namespace farstep::wan {

namespace {

// Sites connect again within seconds, so one that is silent for so many heartbeats has gone. One on
// a dead link has lost its run then, but only if all the others' processes have ended.
constexpr double kReturnBeats = 10;

}  // namespace

Roster::Roster(ServedRun run, const Deadlines& deadlines, const RosterState& state,
               double now_seconds)
    : Roster(std::move(run), deadlines) {
  term_ = std::max(term_, state.term);
  const auto& begun = state.run;
  // If every site has left, there is no run to continue.
  const auto is_present = [](const auto& seat) { return seat.presence == Presence::kPresent; };
  if (!begun || run_.place || std::ranges::none_of(begun->seats, is_present)) return;
  progress_ = begun->progress;
  for (const auto& [key, value, is_of_start] : begun->values) values_[key] = {value, is_of_start};
  if (!begun->verdict.empty()) verdict_ = decode_coordinator_message(begun->verdict);
  seats_.clear();
  for (const auto& known : begun->seats) {
    auto& seat = seats_.emplace_back(known.site);
    seat.presence = known.presence;
    seat.connection = from_hex(known.connection);
    seat.request.site = known.site;
    seat.request.facts = known.facts;
    seat.loss = known.loss;
    seat.fetch = known.fetch;
    seat.handover = known.handover;
    seat.is_offered = known.is_offered;
    seat.is_asked = known.is_asked;
    seat.is_on_trial = known.is_on_trial;
    seat.handover_seconds = now_seconds;
    seat.heard_seconds = now_seconds;
  }
  open_sync(begun->open_sync);
  for (const auto& [site, message] : begun->arrivals) sync_->arrive(site, message);
  if (sync_->all_arrived()) sync_->start(begun->newcomers);
  now_seconds_ = now_seconds;
  has_former_host_ = true;
  rest();
}

// With stand-bys only the term: after an absence, the sites may have gone on with another one, and
// know best. Otherwise the arrivals belong to it once the exchange has begun: a site that has its
// go does not arrive again, and one whose go was lost needs the figures of all.
RosterState Roster::state() const {
  RosterState state{.term = term_, .run = {}};
  if (!has_begun() || run_.place) return state;
  auto& begun = state.run.emplace();
  begun.progress = progress_;
  begun.open_sync = sync_->id();
  if (sync_->has_started()) {
    begun.newcomers = sync_->newcomers();
    for (const auto& site : progress_.members) {
      begun.arrivals.push_back({site, sync_->arrival(site)});
    }
  }
  for (const auto& [key, value] : values_) {
    begun.values.push_back({key, value.text, value.is_of_start});
  }
  if (verdict_) begun.verdict = encode(*verdict_);
  for (const auto& seat : seats_) {
    begun.seats.push_back({.site = seat.site,
                           .presence = seat.presence,
                           .connection = to_hex(seat.connection),
                           .facts = seat.request.facts,
                           .loss = seat.loss,
                           .fetch = seat.fetch,
                           .handover = seat.handover,
                           .is_offered = seat.is_offered,
                           .is_asked = seat.is_asked,
                           .is_on_trial = seat.is_on_trial});
  }
  return state;
}

bool Roster::is_abandoned() const {
  const double patience_seconds = std::min(lost_after_seconds_, kReturnBeats * heartbeat_seconds_);
  return has_new_process_ && std::ranges::none_of(seats_, [&](const Seat& seat) {
           return is_member(seat) && now_seconds_ - seat.heard_seconds <= patience_seconds;
         });
}

void Roster::rest() {
  is_resting_ = true;
  has_new_process_ = false;
  for (auto& seat : seats_) seat.is_awaited = is_present(seat);
  if (pause_seconds_ == 0) return;
  pause_.reset();
  pause({.begin_seconds = now_seconds_, .site = {}, .reason = "no site is heard of"});
}

// While nobody comes back, it may be the coordinator that cannot be reached. So the time of all
// begins anew with the first.
void Roster::hear(Seat& seat) {
  seat.heard_seconds = now_seconds_;
  seat.is_suspected = seat.is_replaced = seat.is_awaited = false;
  if (!is_resting_) return;
  for (auto& other : seats_) other.heard_seconds = now_seconds_;
  is_resting_ = false;
  if (pause_) resume();
  settle();
  if (has_former_host_) lose_former_host();
}

// Two processes never use one journal at the same time, and the coordinator's is the site's.
void Roster::lose_former_host() {
  has_former_host_ = false;
  for (auto& seat : seats_) {
    if (seat.site != run_.host || !is_present(seat) || !seat.is_awaited) continue;
    lose(seat, Presence::kLost, "its process has ended, and the coordinator in it was restarted");
  }
}

void Roster::note_replaced(const std::string& site) {
  for (auto& seat : seats_) seat.is_replaced |= seat.site == site;
}

bool Roster::may_come_back(const std::string& site) const {
  if (verdict_) return false;  // nobody comes back to a run that is over
  const Seat* seat = seat_of_site(site);
  if (seat == nullptr && !run_.is_open()) return false;
  return is_resting_ || (pause_ && !has_present_member()) ||
         (seat != nullptr && is_present(*seat) && seat->is_awaited);
}

std::vector<std::string> Roster::awaited_sites() const {
  std::vector<std::string> sites;
  for (const auto& seat : seats_) {
    if (seat.presence == Presence::kPresent && seat.is_awaited) sites.push_back(seat.site);
  }
  return sites;
}

// Before the run begins, this coordinator becomes the newest. Later the one of the newer term is.
void Roster::learn_term(const std::string& site, int64_t term) {
  if (has_begun() && term > term_) {
    step_down(
        fmt::format("site {} knows a coordinator of term {}, and this one is of term {}: "
                    "only the newest serves the run",
                    site, term, term_));
    term_ = term;
  }
  const bool is_promise = is_claiming_ && term == term_;
  if (has_begun() || term < term_ || is_promise) return;
  term_ = run_.term_after(term);
  is_claiming_ = false;
  enough_seconds_ = now_seconds_;  // another one claims the run, and has time for it
}

void Roster::step_down(const std::string& reason) {
  is_superseded_ = true;
  progress_.failure = reason;
}

std::vector<Outgoing> Roster::hand_over(const std::string& reason) {
  if (has_begun() && !verdict_) send_to_all(UnknownSiteMessage{reason});
  step_down(reason);
  return std::exchange(outbox_, {});
}

std::vector<Outgoing> Roster::end(const std::string& reason) {
  if (has_begun() && !is_over() && !verdict_) end_early(PeerLostMessage{"", reason}, reason);
  return std::exchange(outbox_, {});
}

}  // namespace farstep::wan
