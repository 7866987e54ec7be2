// What Member does in a site of the model: which coordinator it hears, and how it comes back.
#include <algorithm>
#include <utility>

#include "tests/wan/roster/model_site.h"
#include "tests/wan/roster/model_world.h"

namespace farstep::wan {

namespace {

constexpr double kStandByBeats = 10;  // as the Member's

bool is_for_all(const SiteMessage& message) {
  return std::holds_alternative<RegisterMessage>(message) ||
         std::holds_alternative<HeartbeatMessage>(message) ||
         std::holds_alternative<LeaveMessage>(message);
}

// Whether a coordinator that sends it may not know the member.
bool is_of_stranger(const CoordinatorMessage& message) {
  return std::holds_alternative<UnknownSiteMessage>(message) ||
         std::holds_alternative<WaitingMessage>(message) ||
         std::holds_alternative<ClaimMessage>(message);
}

}  // namespace

void ModelSite::send(SiteMessage message) {
  if (auto* registration = std::get_if<RegisterMessage>(&message)) {
    registration->term = world_.known_term(name_);
  }
  for (std::size_t place = 0; place < world_.num_coordinators(); ++place) {
    if (is_for_all(message) || place == current_) world_.send(*this, place, message);
  }
}

double ModelSite::age_seconds() const {
  return world_.now() - started_seconds_;
}

double ModelSite::silence_seconds() const {
  return world_.now() - heard_seconds_;
}

double ModelSite::pause_seconds() const {
  return paused_since_ ? world_.now() - *paused_since_ : 0;
}

bool ModelSite::knows_run() const {
  return welcome_ && std::ranges::count(sites_, name_) > 0 && (view_ || !welcome_->is_newcomer);
}

void ModelSite::beat() {
  if (is_returning_) send(registration_of_member());
  if (request_) send(*request_);
  for (const auto& [token, offer] : offers_) send(offer.message);
  if (!takes_part()) return;
  const auto& deadlines = world_.deadlines();
  if (silence_seconds() > deadlines.coordinator_lost_after_seconds) {
    world_.check_stand_bys();
    crash();  // it cannot reach the coordinator for a goodbye
    return;
  }
  const bool has_others = world_.num_coordinators() > 1;
  const double patience_seconds = kStandByBeats * deadlines.heartbeat_seconds;
  if (has_others && silence_seconds() > patience_seconds) return_to_run();
  if (has_others && pause_seconds() > patience_seconds && !is_returning_) ask_stand_bys();
  HeartbeatMessage heartbeat;
  heartbeat.generation = generation_;
  heartbeat.term = world_.known_term(name_);
  send(heartbeat);
}

bool ModelSite::hears(std::size_t coordinator, const CoordinatorMessage& message) {
  const auto term = std::visit(
      [](const auto& content) -> std::optional<int64_t> {
        if constexpr (requires { content.term; }) return content.term;
        return std::nullopt;
      },
      message);
  auto& known = world_.known_term(name_);
  const auto* refusal = std::get_if<RefusedMessage>(&message);
  if (term && *term < known && (welcome_ || refusal == nullptr)) return false;
  if (term && *term > known) {
    known = *term;
    back_seconds_ = world_.now();
    if (std::exchange(current_, coordinator) != coordinator && request_) send(*request_);
  }
  if (welcome_ || coordinator == current_) return coordinator == current_;
  if (std::holds_alternative<Welcome>(message)) current_ = coordinator;
  return refusal == nullptr || !refusal->is_temporary;
}

void ModelSite::note_life(const CoordinatorMessage& message) {
  if (welcome_ && is_of_stranger(message)) return;
  if (welcome_ && silence_seconds() > world_.deadlines().lost_after_seconds) {
    back_seconds_ = world_.now();
  }
  heard_seconds_ = world_.now();
}

void ModelSite::return_to_run() {
  if (std::exchange(is_returning_, true)) return;
  send(registration_of_member());
}

void ModelSite::ask_stand_bys() {
  auto message = registration_of_member();
  message.term = world_.known_term(name_);
  for (std::size_t place = 0; place < world_.num_coordinators(); ++place) {
    if (place != current_) world_.send(*this, place, message);
  }
}

RegisterMessage ModelSite::registration_of_member() const {
  RegisterMessage message;
  message.site = name_;
  message.generation = generation_;
  if (committed_) {
    message.committed_round = committed_->round;
    message.committed_fragment = committed_->fragment;
  }
  if (knows_run()) {
    message.memory = RunMemory{sites_, welcome_->first_sites, {}};
  }
  return message;
}

void ModelSite::receive(std::size_t coordinator, const CoordinatorMessage& message) {
  if (!hears(coordinator, message)) return;
  note_life(message);
  if (const auto* committed = std::get_if<CommittedMessage>(&message)) {
    committed_ = SyncId{committed->round, committed->fragment};
  }
  if (const auto* ack = std::get_if<HeartbeatAckMessage>(&message)) {
    if (ack->pause.empty()) paused_since_.reset();
    if (!ack->pause.empty() && !paused_since_) paused_since_ = world_.now();
  }
  if (std::holds_alternative<ClaimMessage>(message)) {
    is_returning_ |= takes_part();
    beat();  // the registration in it is the promise
    return;
  }
  if (takes_part() && is_returning_ && answers(message, RegisterMessage{})) {
    is_returning_ = false;
    if (std::holds_alternative<RefusedMessage>(message)) crash();  // and it joins again
    return;
  }
  if (!is_of_stranger(message)) is_returning_ = false;
  if (const auto* welcome = std::get_if<Welcome>(&message); welcome != nullptr && !welcome_) {
    welcome_ = *welcome;
    generation_ = welcome->generation;
    sites_ = welcome->sites;
  }
  // Answers come before the end of an exchange, as Member's thread gives them.
  const auto number = stage_number_;
  const auto* view = std::get_if<ViewMessage>(&message);
  const bool is_new_view = view != nullptr && welcome_ && view->generation > generation_;
  if (is_new_view) on_view(*view);
  if (stage_ == Stage::kGone) return;
  const auto* stored = std::get_if<StoredMessage>(&message);
  if (const auto offer = offers_.find(stored == nullptr ? "" : stored->key);
      offer != offers_.end()) {
    world_.hand_over(*this, offer->second.newcomer, offer->second.state);
    offers_.erase(offer);
    return;
  }
  if (const auto* unwanted = std::get_if<UnwantedMessage>(&message)) {
    const auto refused = offers_.find(unwanted->token);
    if (refused != offers_.end() && answers(message, refused->second.message)) {
      offers_.erase(refused);
    }
    return;
  }
  if (const auto* request = std::get_if<DonateMessage>(&message)) {
    requests_[request->newcomer.site] = *request;
    serve_requests();
    return;
  }
  if (number == stage_number_ && request_ && answers(message, *request_)) {
    request_.reset();
    on_answer(message);
    return;
  }
  if (takes_part() && std::holds_alternative<UnknownSiteMessage>(message)) return_to_run();
  if (takes_part() && std::holds_alternative<PeerLostMessage>(message)) leave(Outcome::kPeerLost);
}

}  // namespace farstep::wan
