// The roster while the run goes on: what each message of a member does.
#include <algorithm>

#include "trainer/base/error.h"
#include "wan/roster/roster.h"

namespace farstep::wan {

void Roster::on(Seat& seat, const PutMessage& message) {
  // A repeated request writes the same value again.
  const auto [entry, is_new] =
      values_.try_emplace(message.key, Value{message.value, !progress_.last_sync});
  if (!is_new && entry->second.text != message.value) {
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
    send(seat.connection, ValueMessage{message.key, entry->second.text});
  } else {
    // Not answered yet: the connection waits for the put.
    getters_[message.key].insert(seat.connection);
  }
}

void Roster::on(Seat& seat, const HeartbeatMessage& message) {
  learn_term(seat.site, message.term);
  if (!is_superseded_ && message.generation > progress_.generation && term_ > 1) {
    step_down(
        fmt::format("site {} is in generation {}, this coordinator in generation {}: its "
                    "journal is older than the run",
                    seat.site, message.generation, progress_.generation));
  }
  if (is_superseded_) return;
  seat.heartbeat = message;
  send(seat.connection,
       HeartbeatAckMessage{message.sent_seconds, now_seconds_, pause_ ? pause_->text() : ""});
  // Sites that wait for nothing hear of the end, or of another generation, by this.
  if (verdict_) {
    send(seat.connection, *verdict_);
  } else if (is_outdated(message.generation)) {
    send(seat.connection, view());
  }
}

bool Roster::is_current(const Seat& seat, std::string_view type, int64_t generation,
                        const SyncId& id) {
  // After the end every request gets the end's reason, in case the first message was lost.
  if (verdict_) {
    send(seat.connection, *verdict_);
    return false;
  }
  if (is_outdated(generation)) {
    send(seat.connection, view());
    return false;
  }
  if (generation == progress_.generation && id == sync_->id()) return true;
  const auto open =
      progress_.takes_any_sync
          ? fmt::format("that is generation {}, where no site has arrived", progress_.generation)
          : fmt::format("that is {} of generation {}", text(sync_->id()), progress_.generation);
  send(seat.connection,
       ErrorMessage{fmt::format("site {} sent {} of {} of generation {}, which is not open: {}",
                                seat.site, type, text(id), generation, open)});
  return false;
}

void Roster::on(Seat& seat, const ArriveMessage& message) {
  const SyncId id{message.round, message.fragment};
  if (has_begun() && !is_member(seat)) {
    welcome_into_sync(seat, message);
    return;
  }
  if (progress_.takes_any_sync && message.generation == progress_.generation) {
    progress_.takes_any_sync = false;
    open_sync(id);
  }
  // Only the first arrival of a run can be that of the measuring sync.
  if (progress_.may_measure && message.generation == progress_.generation) {
    progress_.may_measure = false;
    if (id == kMeasuringSync) open_sync(id);
  }
  if (!is_current(seat, message.kType, message.generation, id)) return;
  // A site that has left regularly is missed only now, when another one needs it. The loss makes
  // this arrival one of an older generation.
  for (auto& other : seats_) {
    if (other.presence == Presence::kPresent || !is_member(other)) continue;
    if (pause_) break;
    lose(other, other.presence, fmt::format("it left before {}", text(id)), false);
    return;
  }
  if (sync_->has_started()) {  // the answer was lost
    send(seat.connection, sync_->go());
    return;
  }
  const int64_t fragments = message.contribution.fragments;
  // Fragments may change between rounds, but must be the same at all sites in one.
  if (sync_->anyone_arrived() && fragments != progress_.fragments) {
    const auto reason = fmt::format("{} syncs round {} in {} fragments, others in {}", seat.site,
                                    id.round, fragments, progress_.fragments);
    end_early(StopMessage{reason}, reason);
    return;
  }
  progress_.fragments = fragments;
  if (!sync_->all_arrived()) all_arrived_seconds_ = now_seconds_;
  sync_->arrive(seat.site, message);
  // A site that leaves comes early. The others are not late because of it.
  if (message.contribution.goes_on()) arrival_history_.arrive(seat.site, now_seconds_);
  start_sync_if_ready();
}

void Roster::start_sync_if_ready() {
  if (!sync_->all_arrived() || sync_->has_started() || pause_ || waits_for_newcomer()) return;
  if (const auto sites = sync_->differing_arrivals(); !sites.empty()) {
    const auto reason =
        fmt::format("theta_global differs before the sync of {}: {}", text(sync_->id()), sites);
    end_early(StopMessage{reason}, reason);
  } else {
    forget_late_states();
    sync_->start(newcomers_of_sync());
    send_to_members(sync_->go());
  }
}

void Roster::on(Seat& seat, const VoteMessage& message) {
  const SyncId id{message.round, message.fragment};
  const CommittedMessage committed{message.generation, message.round, message.fragment};
  // The next sync is open by now, so a repeated vote must be recognised before the check below. A
  // generation that began since changes nothing: what is committed stays.
  const bool is_committed = has_begun() && id == progress_.last_sync;
  if (is_committed) {  // the answer was lost
    send(seat.connection, committed);
    return;
  }
  if (!is_current(seat, message.kType, message.generation, id)) return;
  if (!is_member(seat)) {
    send(seat.connection,
         ErrorMessage{
             fmt::format("site {} voted on {}, which has begun without it", seat.site, text(id))});
    return;
  }
  if (!sync_->has_started()) {
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
  progress_.last_sync = id;
  arrival_history_.commit(now_seconds_);
  trouble_.reset();
  troubled_seconds_.reset();
  for (auto& other : seats_) other.is_on_trial = false;
  link_reports_.forget_severed(progress_.members);
  link_reports_.forget_standing();
  prepare_handovers(*sync_);
  const bool ends_round = id.fragment + 1 == progress_.fragments;
  progress_.last_round.reset();
  if (ends_round && id.round > 0) {
    progress_.last_round = {id.round, sync_->voted_hash(), sync_->donors()};
  }
  open_sync(ends_round ? SyncId{id.round + 1, 0} : SyncId{id.round, id.fragment + 1});
  send_to_members(committed);
  ask_donors();
}

void Roster::on(Seat& seat, const MetricsMessage& message) {
  // Kept by seat, because sites report the same round at different times.
  seat.metrics = message;
  double loss_sum = 0;
  double tokens = 0;
  double idle_seconds = 0;
  double seconds = 0;
  for (const auto& other : seats_) {
    if (!is_member(other)) continue;
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

}  // namespace farstep::wan
