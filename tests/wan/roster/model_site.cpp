#include "tests/wan/roster/model_site.h"

#include <algorithm>
#include <utility>

#include "tests/wan/roster/model_world.h"

namespace farstep::wan {

namespace {

// Stands for deadlines.join_seconds and transfer_stall_seconds: shorter, so that a schedule ends
// soon, and far beyond every outage that the world draws.
constexpr double kJoinSeconds = 40;
constexpr double kStallSeconds = 15;

std::string address_key(int64_t generation, const std::string& site) {
  return fmt::format("network/{}/{}", generation, site);
}

}  // namespace

ModelSite::ModelSite(ModelWorld& world, std::string name, std::string connection, double uplink)
    : world_(world),
      name_(std::move(name)),
      connection_(std::move(connection)),
      uplink_(uplink),
      request_bytes_(world.chance().one_in(2) ? 300 : 100'000),
      registrations_(world.num_coordinators()),
      started_seconds_(world.now()),
      heard_seconds_(world.now()) {
  RegisterMessage request;
  request.site = name_;
  ask(Stage::kJoining, request);
  later(kJoinSeconds, [this] { end(); });
}

bool ModelSite::takes_part() const {
  return welcome_ && stage_ != Stage::kLeaving && stage_ != Stage::kGone;
}

bool ModelSite::can_go_on() const {
  return takes_part() && stage_ != Stage::kFetching && stage_ != Stage::kReceiving;
}

std::string ModelSite::text() const {
  return fmt::format("{} in stage {}, round {}, fragment {}, generation {}", connection_,
                     static_cast<int>(stage_), sync_.round, sync_.fragment, generation_);
}

// ---- the member ----

void ModelSite::enter(Stage stage) {
  stage_ = stage;
  ++stage_number_;
  request_.reset();
  repetition_ = {};
}

void ModelSite::ask(Stage stage, SiteMessage request) {
  enter(stage);
  request_ = std::move(request);
  repeat(*request_, repetition_);
}

template <typename Function>
void ModelSite::later(double seconds, Function function) {
  world_.after(seconds, [this, function, number = stage_number_] {
    if (number == stage_number_) function();
  });
}

void ModelSite::on_view(const ViewMessage& view) {
  const bool has_lost = view.lost_generation > generation_;
  if (view.committed_round >= 0) committed_ = {view.committed_round, view.committed_fragment};
  view_ = view;
  generation_ = view.generation;
  sites_ = view.sites;
  if (stage_ == Stage::kConnecting && request_ && std::holds_alternative<GetMessage>(*request_)) {
    repetition_.note_loss();
    if (has_lost) lost_while_connecting();
  } else if (stage_ == Stage::kExchanging && view.lost_generation > links_generation_) {
    // The listener aborts the links.
    renew(view.lost);
  }
}

void ModelSite::on_answer(const CoordinatorMessage& answer) {
  if (std::holds_alternative<RefusedMessage>(answer) ||
      std::holds_alternative<GoodbyeMessage>(answer)) {
    end();
  } else if (std::holds_alternative<Welcome>(answer)) {
    if (welcome_->is_newcomer) {
      fetch();
    } else {
      connect(welcome_->generation, welcome_->sites);
    }
  } else if (std::holds_alternative<StoredMessage>(answer) ||
             std::holds_alternative<ValueMessage>(answer)) {
    get_next_address();
  } else if (const auto* go = std::get_if<Go>(&answer)) {
    world_.check_member(*this, *go);
    generation_of_sync_ = go->generation;
    begin_exchange(*go);
  } else if (std::holds_alternative<LateMessage>(answer)) {
    fetch();
  } else if (const auto* handover = std::get_if<HandoverMessage>(&answer)) {
    handover_ = *handover;
    enter(Stage::kReceiving);
    later(kStallSeconds, [this] { fetch(); });
    take_state();
  } else if (std::holds_alternative<CommittedMessage>(answer)) {
    apply();
  } else if (const auto* view = std::get_if<ViewMessage>(&answer)) {
    if (stage_ != Stage::kVoting) {
      arrive();
    } else if (SyncId{view->committed_round, view->committed_fragment} == sync_) {
      apply();
    } else {
      renew(view->lost);
    }
  }
}

void ModelSite::crash() {
  if (!is_alive()) return;
  enter(Stage::kGone);
  world_.gone(*this, true);
}

void ModelSite::end() {
  enter(Stage::kGone);
  world_.gone(*this, false);
}

void ModelSite::leave(Outcome outcome) {
  if (!takes_part()) return;
  if (go_) world_.leave_exchange(name_, go_->generation, sync_);
  has_done_all_ = outcome == Outcome::kDone;
  ask(Stage::kLeaving, LeaveMessage{outcome, ""});
  later(world_.deadlines().leave_seconds, [this] { end(); });
}

// ---- the state of the run ----

void ModelSite::fetch() {
  attends_ = true;
  state_.reset();
  handover_.reset();
  token_ = fmt::format("{:016x}{:016x}", std::hash<std::string>{}(connection_), ++num_fetches_);
  ask(Stage::kFetching, FetchMessage{"10.0.0.1", 4000, token_});
}

void ModelSite::state_came(const std::string& token, const ModelState& state) {
  if (token != token_ || (stage_ != Stage::kFetching && stage_ != Stage::kReceiving)) return;
  state_ = state;
  take_state();
}

// The donor's bytes and the coordinator's message may come in any order.
void ModelSite::take_state() {
  if (!state_ || !handover_) return;
  world_.check_handover(*handover_, *state_);
  theta_ = state_->theta;
  sync_ = {.round = state_->rounds_done + 1, .fragment = 0};
  go_.reset();
  if (sync_.round > world_.rounds()) {
    leave(Outcome::kDone);
  } else {
    arrive();
  }
}

// ---- the links ----

void ModelSite::connect(int64_t generation, const std::vector<std::string>& members) {
  connecting_generation_ = generation;
  to_connect_ = members;
  std::erase(to_connect_, name_);
  ask(Stage::kConnecting, PutMessage{address_key(generation, name_), to_hex(connection_)});
}

void ModelSite::get_next_address() {
  if (to_connect_.empty()) {
    connected();
    return;
  }
  if (view_ && view_->lost_generation > std::max(welcome_->generation, generation_of_sync_)) {
    lost_while_connecting();
    return;
  }
  const auto peer = to_connect_.back();
  to_connect_.pop_back();
  ask(Stage::kConnecting, GetMessage{address_key(connecting_generation_, peer)});
  await_address();
}

void ModelSite::await_address() {
  later(kJoinSeconds, [this] { paused_since_ ? await_address() : lost_while_connecting(); });
}

void ModelSite::connected() {
  links_generation_ = connecting_generation_;
  if (go_) {
    begin_exchange(*go_);
  } else {
    train();
  }
}

void ModelSite::lost_while_connecting() {
  if (go_) {
    renew(view_ ? view_->lost : "");
  } else {
    leave(Outcome::kPeerLost);  // at start-up nothing is done that could be lost
  }
}

// ---- the round ----

void ModelSite::train() {
  enter(Stage::kTraining);
  later(world_.step_seconds(), [this] { arrive(); });
  serve_requests();
}

void ModelSite::serve_requests() {
  if (stage_ != Stage::kTraining || sync_.fragment > 0) return;
  const int64_t rounds_done = sync_.round - 1;
  for (const auto& [site, request] : requests_) {
    // Some transfers are not worth their wait.
    if (request.round != rounds_done || world_.chance().one_in(4)) continue;
    offer(request.newcomer, rounds_done);
  }
  std::erase_if(requests_, [&](const auto& entry) { return entry.second.round <= rounds_done; });
}

void ModelSite::offer(const Newcomer& newcomer, int64_t round) {
  const auto& token = newcomer.request.token;
  if (!are_offered_.emplace(token, round).second) return;
  // What it expects may be wrong.
  const double seconds = world_.chance().one_in(2) ? 0 : world_.chance().between(0.05, 2);
  const OfferMessage message{token, round, seconds, ""};
  auto& offered = offers_[token] = {newcomer, {.rounds_done = round, .theta = theta_}, message, {}};
  send(message, offered.repetition);
}

void ModelSite::arrive() {
  ArriveMessage message{generation_, sync_.round, sync_.fragment, {}, std::to_string(theta_)};
  if (!attends_) message.contribution.work = {100, 4, 1000};
  message.contribution.fragments = world_.fragments();
  message.contribution.timing.uplink_bits_per_second = attends_ ? 0 : uplink_;
  ask(Stage::kArriving, message);
}

void ModelSite::begin_exchange(const Go& go) {
  go_ = go;
  if (links_generation_ != go.generation) {
    connect(go.generation, go.sites);
    return;
  }
  enter(Stage::kExchanging);
  // A member that takes part elsewhere sends nothing.
  later(kStallSeconds, [this] { renew(""); });
  // The same delta each time that the sync is repeated.
  const uint64_t delta =
      attends_ ? 0
               : mix(mix(std::hash<std::string>{}(connection_), static_cast<uint64_t>(sync_.round)),
                     static_cast<uint64_t>(sync_.fragment));
  world_.join_exchange(*this, go, theta_, delta);
}

void ModelSite::exchange_done(int64_t generation, const SyncId& sync, uint64_t mean) {
  if (stage_ != Stage::kExchanging || go_->generation != generation || sync_ != sync) return;
  mean_ = mean;
  ask(Stage::kVoting,
      VoteMessage{go_->generation, sync_.round, sync_.fragment, std::to_string(mean_)});
}

void ModelSite::exchange_failed(int64_t generation, const SyncId& sync,
                                const std::string& suspect) {
  if (stage_ != Stage::kExchanging || go_->generation != generation || sync_ != sync) return;
  renew(suspect);
}

void ModelSite::renew(const std::string& suspect) {
  world_.leave_exchange(name_, go_->generation, sync_);
  const auto& deadlines = world_.deadlines();
  ask(Stage::kSuspecting, SuspectMessage{go_->generation, suspect});
  const bool can_lose_one = std::ssize(sites_) > welcome_->min_sites;
  later(deadlines.lost_after_seconds + 2 * deadlines.heartbeat_seconds,
        [this, suspect, can_lose_one, from = world_.now()] {
          const bool was_away = back_seconds_ >= from || world_.now() - heard_seconds_ >
                                                             world_.deadlines().lost_after_seconds;
          if (paused_since_ || (can_lose_one && was_away)) {
            renew(suspect);
          } else {
            give_up_round();
          }
        });
}

// A newcomer takes a newer state then; any other site ends, and is started again.
void ModelSite::give_up_round() {
  go_.reset();
  if (attends_) {
    fetch();
  } else {
    leave(Outcome::kPeerLost);
  }
}

void ModelSite::apply() {
  theta_ = mean_;
  world_.applied(*this, sync_, theta_);
  const auto newcomers = std::move(go_->newcomers);
  go_.reset();
  if (sync_.fragment + 1 < world_.fragments()) {
    ++sync_.fragment;
    if (attends_) {
      arrive();
    } else {
      train();
    }
    return;
  }
  // A round that is attended hands nothing over.
  for (const auto& newcomer : newcomers) {
    if (newcomer.donor == name_ && !attends_) offer(newcomer, sync_.round);
  }
  attends_ = false;
  sync_ = {.round = sync_.round + 1, .fragment = 0};
  if (sync_.round > world_.rounds()) {
    leave(Outcome::kDone);
  } else {
    train();
  }
}

}  // namespace farstep::wan
