// What Member does in a site of the model: which coordinator it hears, and how it comes back.
#include <algorithm>
#include <utility>

#include "tests/wan/roster/model_site.h"
#include "tests/wan/roster/model_world.h"

namespace farstep::wan {

namespace {

constexpr double kStandByBeats = 10;  // as the Member's
constexpr std::size_t kRegistrationBytes = 1000;

bool is_for_all(const SiteMessage& message) {
  return std::holds_alternative<HeartbeatMessage>(message) ||
         std::holds_alternative<LeaveMessage>(message);
}

// Whether a coordinator that sends it may not know the member.
bool is_of_stranger(const CoordinatorMessage& message) {
  return std::holds_alternative<UnknownSiteMessage>(message) ||
         std::holds_alternative<WaitingMessage>(message) ||
         std::holds_alternative<ClaimMessage>(message);
}

}  // namespace

void ModelSite::send(const SiteMessage& message) {
  for (std::size_t place = 0; place < world_.num_coordinators(); ++place) {
    if (is_for_all(message) || place == current_) world_.send(*this, place, message);
  }
}

void ModelSite::send(const SiteMessage& request, Repetition& repetition) {
  send(request);
  repetition.note_copy(world_.now(), request_bytes_, world_.deadlines().heartbeat_seconds);
}

void ModelSite::send_registration(RegisterMessage message, bool is_new,
                                  std::optional<std::size_t> but) {
  message.term = world_.known_term(name_);
  for (std::size_t place = 0; place < world_.num_coordinators(); ++place) {
    if (place == but) continue;
    auto& repetition = registrations_[place];
    if (is_new) repetition.note_loss();
    if (!repetition.is_paced(world_.now())) continue;
    world_.send(*this, place, message);
    repetition.note_copy(world_.now(), kRegistrationBytes, world_.deadlines().heartbeat_seconds);
  }
}

void ModelSite::repeat(const SiteMessage& request, Repetition& repetition) {
  const double now_seconds = world_.now();
  if (const auto* registration = std::get_if<RegisterMessage>(&request)) {
    send_registration(*registration, !repetition.is_sent());
    repetition.note_copy(now_seconds, 0, 0);
  } else if (stage_ == Stage::kLeaving ? repetition.is_paced(now_seconds)
                                       : repetition.is_due(now_seconds, answered_beat_seconds_)) {
    send(request, repetition);
  }
}

void ModelSite::connection_ended(std::size_t coordinator) {
  registrations_[coordinator].note_loss();
  const bool is_goodbye = stage_ == Stage::kLeaving;
  const bool is_registration = stage_ == Stage::kJoining;
  if ((coordinator == current_ || is_goodbye) && !is_registration) repetition_.note_loss();
  if (coordinator != current_) return;
  for (auto& [token, offer] : offers_) offer.repetition.note_loss();
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
  if (takes_part()) {
    const auto& deadlines = world_.deadlines();
    if (silence_seconds() > deadlines.coordinator_lost_after_seconds) {
      world_.check_stand_bys();
      crash();  // it cannot reach the coordinator for a goodbye
      return;
    }
    const bool has_others = world_.num_coordinators() > 1;
    const double patience_seconds = kStandByBeats * deadlines.heartbeat_seconds;
    if (has_others && silence_seconds() > patience_seconds) return_to_run();
    HeartbeatMessage heartbeat;
    heartbeat.sent_seconds = world_.now();
    heartbeat.generation = generation_;
    heartbeat.term = world_.known_term(name_);
    send(heartbeat);
    const bool was_knocking = is_knocking_;
    is_knocking_ = has_others && pause_seconds() > patience_seconds && !is_returning_;
    if (is_knocking_) send_registration(registration_of_member(), !was_knocking, current_);
  }
  if (is_returning_) send_registration(registration_of_member(), false);
  if (request_) repeat(*request_, repetition_);
  for (auto& [token, offer] : offers_) repeat(offer.message, offer.repetition);
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
    // A registration that went out before was no promise.
    const bool is_registration = stage_ == Stage::kJoining;
    if (is_registration || current_ != coordinator) repetition_.note_loss();
    for (auto& registration : registrations_) registration.note_loss();
    if (std::exchange(current_, coordinator) != coordinator && request_) {
      for (auto& [token, offer] : offers_) offer.repetition.note_loss();
      repeat(*request_, repetition_);
    }
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
  send_registration(registration_of_member(), true);
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
  if (answers_registration(message)) registrations_[coordinator].note_answer();
  if (!hears(coordinator, message)) return;
  note_life(message);
  if (const auto* committed = std::get_if<CommittedMessage>(&message)) {
    committed_ = SyncId{committed->round, committed->fragment};
  }
  if (const auto* ack = std::get_if<HeartbeatAckMessage>(&message)) {
    answered_beat_seconds_ = std::max(answered_beat_seconds_, ack->sent_seconds);
    if (ack->pause.empty()) paused_since_.reset();
    if (!ack->pause.empty() && !paused_since_) paused_since_ = world_.now();
  }
  if (std::holds_alternative<ClaimMessage>(message)) {
    is_returning_ |= takes_part();
    // The promise.
    if (is_returning_) send_registration(registration_of_member(), false);
    if (request_ && stage_ == Stage::kJoining) repeat(*request_, repetition_);
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
