#include "wan/membership/roster.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "trainer/base/error.h"
#include "wan/membership/admission.h"

namespace farstep {

Roster::Roster(ServedRun run, const Deadlines& deadlines)
    : run_(std::move(run.config)),
      lost_after_seconds_(deadlines.lost_after_seconds),
      seats_(run.sites.begin(), run.sites.end()),
      num_fragments_(run.fragments) {}

std::vector<Outgoing> Roster::receive(const std::string& connection, const SiteMessage& message,
                                      double now_seconds) {
  now_seconds_ = now_seconds;
  Seat* seat = seat_of_connection(connection);
  // Only seats that are present take messages. A site that counts as lost may still send, and must
  // hear that.
  if (seat != nullptr && seat->presence == Presence::kPresent) {
    seat->heard_seconds = now_seconds;
    std::visit([&](const auto& content) { on(*seat, content); }, message);
  } else {
    on_stranger(connection, message);
  }
  return std::exchange(outbox_, {});
}

std::vector<Outgoing> Roster::tick(double now_seconds) {
  now_seconds_ = now_seconds;
  for (auto& seat : seats_) {
    const double silence_seconds = now_seconds - seat.heard_seconds;
    if (seat.presence != Presence::kPresent || silence_seconds <= lost_after_seconds_) continue;
    const auto& last = seat.heartbeat;
    lose(seat, Presence::kLost,
         fmt::format("silent for {:.1f} s; last heard of in round {}, step {}{}{}", silence_seconds,
                     last.round, last.step, last.activity.empty() ? "" : ": ", last.activity));
  }
  return std::exchange(outbox_, {});
}

bool Roster::is_over() const {
  return has_begun() && std::none_of(seats_.begin(), seats_.end(), [](const Seat& seat) {
           return seat.presence == Presence::kPresent;
         });
}

// ---- joining ----

void Roster::on_stranger(const std::string& connection, const SiteMessage& message) {
  if (const auto* request = std::get_if<RegisterMessage>(&message)) {
    admit(connection, *request);
  } else if (std::holds_alternative<LeaveMessage>(message)) {
    send(connection, GoodbyeMessage{});  // it has left already, and the answer was lost
  } else if (const Seat* seat = seat_of_connection(connection)) {
    send(connection,
         UnknownSiteMessage{
             seat->presence == Presence::kLost
                 ? fmt::format("site {} was silent for so long that it counts as lost", seat->site)
                 : fmt::format("site {} has left", seat->site)});
  } else {
    send(connection,
         UnknownSiteMessage{
             "it knows no such member of its run; it was restarted, or is another one"});
  }
}

void Roster::admit(const std::string& connection, const RegisterMessage& message) {
  if (const auto refusal = objection(message)) {
    send(connection, *refusal);
    return;
  }
  for (auto& seat : seats_) {
    if (seat.site != message.site) continue;
    seat.presence = Presence::kPresent;
    seat.connection = connection;
    seat.request = message;
    seat.heard_seconds = now_seconds_;
  }
  if (missing_sites().empty()) {
    begin();
  } else {
    send(connection, WaitingMessage{missing_sites()});
  }
}

std::optional<RefusedMessage> Roster::objection(const RegisterMessage& message) const {
  const auto temporary = [](const std::string& reason) { return RefusedMessage{reason, true}; };
  const Seat* own = seat_of_site(message.site);
  if (own == nullptr) {
    return RefusedMessage{fmt::format("site {} is not in the run, whose sites are {}", message.site,
                                      fmt::join(site_names(), ", "))};
  }
  if (has_begun()) {
    return temporary(fmt::format(
        "the run has begun; site {} cannot join it; when the other sites have ended, start all of "
        "them with --resume",
        message.site));
  }
  if (own->presence == Presence::kPresent) {
    return temporary(fmt::format(
        "site {} has registered already, by a process that was alive {:.1f} s ago; if that one is "
        "gone, try again in {:.1f} s",
        message.site, now_seconds_ - own->heard_seconds, lost_after_seconds_));
  }
  auto reason = objection_to_run(message, run_);
  for (const auto& seat : seats_) {
    if (reason) break;
    if (seat.presence == Presence::kPresent) reason = objection_to_site(message, seat.request);
  }
  if (!reason) return std::nullopt;
  return RefusedMessage{*reason};
}

void Roster::begin() {
  std::vector<RegisterMessage> requests;
  for (const auto& seat : seats_) requests.push_back(seat.request);
  const auto start_syncs = start_syncs_of(requests);
  if (!start_syncs) {
    send_to_all(RefusedMessage{
        no_common_start_text(requests, num_fragments_ == 1 ? "rounds" : "fragments' syncs")});
    // All must register again, with or without other checkpoints.
    for (auto& seat : seats_) seat = Seat(seat.site);
    return;
  }
  start_syncs_ = *start_syncs;
  // Only the sites' checkpoints tell which sync of the round is next.
  takes_any_sync_ = start_syncs_ > 0;
  may_measure_ = !takes_any_sync_;
  open_sync(1, SyncId{});
  for (const auto& seat : seats_) send(seat.connection, welcome(seat));
}

void Roster::open_sync(int64_t generation, const SyncId& id) {
  sync_.emplace(generation, id, site_names());
}

Welcome Roster::welcome(const Seat& seat) const {
  return {.run = run_,
          .site_id = &seat - seats_.data(),
          .sites = site_names(),
          .generation = sync_->generation(),
          .start_syncs = start_syncs_,
          .profiles = profiles()};
}

std::vector<Json> Roster::profiles() const {
  std::vector<Json> profiles;
  for (const auto& seat : seats_) profiles.push_back(seat.request.profile);
  return profiles;
}

std::vector<std::string> Roster::site_names() const {
  std::vector<std::string> names;
  for (const auto& seat : seats_) names.push_back(seat.site);
  return names;
}

std::vector<std::string> Roster::missing_sites() const {
  std::vector<std::string> missing;
  for (const auto& seat : seats_) {
    if (seat.presence == Presence::kExpected) missing.push_back(seat.site);
  }
  return missing;
}

void Roster::on(Seat& seat, const RegisterMessage& message) {
  if (message.site != seat.site) {
    send(seat.connection,
         RefusedMessage{fmt::format("this process is site {} already", seat.site)});
  } else if (has_begun()) {
    send(seat.connection, welcome(seat));
  } else {
    send(seat.connection, WaitingMessage{missing_sites()});
  }
}

// ---- running ----

void Roster::on(Seat& seat, const PutMessage& message) {
  // A repeated request writes the same value again.
  const auto [entry, is_new] = values_.emplace(message.key, message.value);
  if (!is_new && entry->second != message.value) {
    send(seat.connection,
         ErrorMessage{fmt::format("the key {} is written twice, with two values", message.key)});
    return;
  }
  send(seat.connection, StoredMessage{message.key});
  for (const auto& connection : getters_[message.key]) {
    send(connection, ValueMessage{message.key, message.value});
  }
  getters_.erase(message.key);
}

void Roster::on(Seat& seat, const GetMessage& message) {
  const auto entry = values_.find(message.key);
  if (entry != values_.end()) {
    send(seat.connection, ValueMessage{message.key, entry->second});
  } else {
    // Not answered yet: the connection waits for the put.
    getters_[message.key].insert(seat.connection);
  }
}

void Roster::on(Seat& seat, const HeartbeatMessage& message) {
  seat.heartbeat = message;
  send(seat.connection, HeartbeatAckMessage{message.sent_seconds, now_seconds_});
  // Sites that wait for nothing hear of the end by this.
  if (verdict_) send(seat.connection, *verdict_);
}

bool Roster::is_current(const Seat& seat, std::string_view type, int64_t generation,
                        const SyncId& id) {
  // After the end every request gets the end's reason, in case the first message was lost.
  if (verdict_) {
    send(seat.connection, *verdict_);
    return false;
  }
  if (has_begun() && generation == sync_->generation() && id == sync_->id()) return true;
  const auto open =
      !has_begun() ? "sites are still joining"
      : takes_any_sync_
          ? fmt::format("that is generation {}, where no site has arrived", sync_->generation())
          : fmt::format("that is {} of generation {}", text(sync_->id()), sync_->generation());
  send(seat.connection,
       ErrorMessage{fmt::format("site {} sent {} of {} of generation {}, which is not open: {}",
                                seat.site, type, text(id), generation, open)});
  return false;
}

void Roster::on(Seat& seat, const ArriveMessage& message) {
  const SyncId id{message.round, message.fragment};
  if (takes_any_sync_ && message.generation == sync_->generation()) {
    takes_any_sync_ = false;
    open_sync(message.generation, id);
  }
  // Only the first arrival of a run can be that of the measuring sync.
  if (may_measure_ && message.generation == sync_->generation()) {
    may_measure_ = false;
    if (id == kMeasuringSync) open_sync(message.generation, id);
  }
  if (!is_current(seat, message.kType, message.generation, id)) return;
  // A site that has left regularly is missed only now, when another one needs it.
  for (auto& other : seats_) {
    if (other.presence == Presence::kPresent) continue;
    lose(other, other.presence, fmt::format("it left before {}", text(id)));
    return;
  }
  if (sync_->all_arrived()) {  // the answer was lost
    send(seat.connection, sync_->go());
    return;
  }
  const int64_t fragments = message.contribution.fragments;
  // Fragments may change between rounds, but must be the same at all sites in one.
  if (sync_->anyone_arrived() && fragments != num_fragments_) {
    const auto reason = fmt::format("{} syncs round {} in {} fragments, others in {}", seat.site,
                                    id.round, fragments, num_fragments_);
    end_early(StopMessage{reason}, reason);
    return;
  }
  num_fragments_ = fragments;
  sync_->arrive(seat.site, message);
  if (!sync_->all_arrived()) return;
  if (const auto sites = sync_->differing_arrivals(); !sites.empty()) {
    const auto reason =
        fmt::format("theta_global differs before the sync of {}: {}", text(id), sites);
    end_early(StopMessage{reason}, reason);
  } else {
    send_to_all(sync_->go());
  }
}

void Roster::on(Seat& seat, const VoteMessage& message) {
  const SyncId id{message.round, message.fragment};
  const CommittedMessage committed{message.generation, message.round, message.fragment};
  // The next sync is open by now, so a repeated vote must be recognised before the check below.
  const bool is_committed =
      has_begun() && message.generation == sync_->generation() && id == last_sync_;
  if (is_committed) {  // the answer was lost
    send(seat.connection, committed);
    return;
  }
  if (!is_current(seat, message.kType, message.generation, id)) return;
  if (!sync_->all_arrived()) {
    send(seat.connection,
         ErrorMessage{fmt::format("site {} voted on {} before all arrived", seat.site, text(id))});
    return;
  }
  sync_->vote(seat.site, message);
  if (!sync_->all_voted()) return;
  if (const auto sites = sync_->differing_votes(); !sites.empty()) {
    const auto reason =
        fmt::format("theta_global differs after the exchange of {}: {}", text(id), sites);
    end_early(StopMessage{reason}, reason);
    return;
  }
  last_sync_ = id;
  const bool ends_round = id.fragment + 1 == num_fragments_;
  open_sync(message.generation,
            ends_round ? SyncId{id.round + 1, 0} : SyncId{id.round, id.fragment + 1});
  send_to_all(committed);
}

void Roster::on(Seat& seat, const MetricsMessage& message) {
  // Kept by seat, because sites report the same round at different times.
  seat.metrics = message;
  double loss_sum = 0;
  double tokens = 0;
  double idle_seconds = 0;
  double seconds = 0;
  for (const auto& other : seats_) {
    if (!other.metrics || other.metrics->round != message.round) return;
    const auto weight = static_cast<double>(other.metrics->tokens);
    loss_sum += weight * other.metrics->train_loss;
    tokens += weight;
    idle_seconds += other.metrics->idle_seconds;
    seconds += other.metrics->idle_seconds + other.metrics->compute_seconds;
  }
  round_summary_ = fmt::format("round {}: training loss {:.4f} over {:.0f} tokens, idle {:.1f} %",
                               message.round, tokens > 0 ? loss_sum / tokens : 0, tokens,
                               seconds > 0 ? 100 * idle_seconds / seconds : 0);
}

void Roster::on(Seat& seat, const LeaveMessage& message) {
  send(seat.connection, GoodbyeMessage{});
  // Between two syncs nobody waits for this site.
  if (message.outcome == Outcome::kDone && has_begun() && !sync_->anyone_arrived()) {
    seat.presence = Presence::kLeft;
    return;
  }
  // To the others an early end is a loss, whatever its reason.
  lose(seat, Presence::kLeft,
       fmt::format("it left the run: {}{}{}", name_of(message.outcome),
                   message.message.empty() ? "" : ": ", message.message));
}

// ---- ending ----

void Roster::lose(Seat& seat, Presence presence, const std::string& reason) {
  if (!has_begun()) {
    seat = Seat(seat.site);  // its place is free for another try
    return;
  }
  seat.presence = presence;
  // The first loss is the verdict. Sites that end because of it must not be named as causes.
  if (verdict_) return;
  end_early(PeerLostMessage{seat.site, reason}, fmt::format("site {}: {}", seat.site, reason));
}

void Roster::end_early(const CoordinatorMessage& verdict, const std::string& failure) {
  verdict_ = verdict;
  failure_ = failure;
  send_to_all(verdict);
}

// ---- seats ----

Roster::Seat* Roster::seat_of_connection(const std::string& connection) {
  const auto seat = std::find_if(seats_.begin(), seats_.end(), [&](const Seat& candidate) {
    return candidate.presence != Presence::kExpected && candidate.connection == connection;
  });
  return seat == seats_.end() ? nullptr : &*seat;
}

const Roster::Seat* Roster::seat_of_site(const std::string& site) const {
  const auto seat = std::find_if(seats_.begin(), seats_.end(),
                                 [&](const Seat& candidate) { return candidate.site == site; });
  return seat == seats_.end() ? nullptr : &*seat;
}

void Roster::send(const std::string& connection, CoordinatorMessage message) {
  outbox_.push_back({connection, std::move(message)});
}

void Roster::send_to_all(const CoordinatorMessage& message) {
  for (const auto& seat : seats_) {
    if (seat.presence == Presence::kPresent) send(seat.connection, message);
  }
}

}  // namespace farstep
