// Callers wait on a condition for what the thread finds out (member_thread.cpp). Every wait has a
// deadline and ends early when the run does; the first failure counts, and all waits report it.
#include "wan/membership/member.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

namespace farstep::wan {

namespace {

// The coordinator looks for silent sites twice a heartbeat, and its answer takes a way.
constexpr double kRenewalBeats = 2;  // beyond lost_after_seconds

}  // namespace

Member::Member(const std::vector<CoordinatorEndpoint>& coordinators, std::string site,
               const Deadlines& deadlines, Clock& clock, std::filesystem::path term_file)
    : site_(std::move(site)),
      clock_(clock),
      lines_(coordinators, deadlines),
      term_file_(std::move(term_file)),
      deadlines_(deadlines) {
  load_term();
  thread_ = std::thread([this] { run(); });
}

Member::Member(const std::string& endpoint, std::string site, const Deadlines& deadlines,
               Clock& clock, std::filesystem::path term_file)
    : Member({CoordinatorEndpoint{endpoint, {}}}, std::move(site), deadlines, clock,
             std::move(term_file)) {}

Member::~Member() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  lines_.wake();
  thread_.join();
}

// ---- calls of the site ----

void Member::put(const std::string& key, const std::string& value) {
  put_and_get(key, value, {});
}

std::string Member::get(const std::string& key) {
  return request_values({}, {key}).front();
}

std::vector<std::string> Member::put_and_get(const std::string& key, const std::string& value,
                                             const std::vector<std::string>& wanted) {
  auto values = request_values(PutMessage{key, to_hex(value)}, wanted);
  remember(key, value);
  return values;
}

// Repeated as a whole while the run pauses: each request gets the same answer again.
std::vector<std::string> Member::request_values(const std::optional<PutMessage>& own,
                                                const std::vector<std::string>& wanted) {
  // The others may take as long to start as to join.
  const double patience_seconds = deadlines().join_seconds;
  if (!wanted.empty()) {
    const std::lock_guard lock(mutex_);
    throw_if_outdated();
  }
  std::vector<SiteMessage> messages;
  if (own) messages.emplace_back(*own);
  for (const auto& key : wanted) messages.emplace_back(GetMessage{key});
  std::vector<std::optional<CoordinatorMessage>> answers;
  do {
    answers = Asking(*this, messages).wait(clock_.now_seconds() + patience_seconds);
  } while (!std::ranges::all_of(answers, &std::optional<CoordinatorMessage>::has_value) &&
           is_paused());
  const std::size_t first = own ? 1 : 0;
  if (own && !answers.front()) {
    throw PeerError("", fmt::format("coordinator at {} did not take {} within {} s", coordinator(),
                                    own->key, patience_seconds));
  }
  std::vector<std::string> values;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto& answer = answers[first + i];
    if (!answer) {
      throw PeerError("", fmt::format("no site put {} at the coordinator within {} s", wanted[i],
                                      patience_seconds));
    }
    if (const auto* view = std::get_if<ViewMessage>(&*answer)) throw_lost(*view);
    values.push_back(from_hex(std::get<ValueMessage>(*answer).value));
    remember(wanted[i], values.back());
  }
  return values;
}

void Member::remember(const std::string& key, const std::string& value) {
  const std::lock_guard lock(mutex_);
  if (!committed_) start_values_[key] = value;
}

std::optional<Go> Member::arrive(const SyncId& sync, const Contribution& contribution,
                                 const std::string& theta_hash, std::stop_token stop) {
  while (true) {
    // Without a deadline: a slow peer is waited for, and the loss of one ends the wait.
    const auto answer =
        ask(ArriveMessage{generation(), sync.round, sync.fragment, contribution, theta_hash},
            kNever, stop);
    if (!answer) return std::nullopt;
    if (std::holds_alternative<LateMessage>(*answer)) {
      throw PeerError("", fmt::format("the sync of round {} has begun without site {}, which must "
                                      "fetch the state again",
                                      sync.round, site_));
    }
    // Otherwise a site was lost or has joined, and all meet in a new generation.
    if (const auto* go = std::get_if<Go>(&*answer)) {
      const std::lock_guard lock(mutex_);
      generation_of_sync_ = go->generation;
      return *go;
    }
  }
}

std::optional<HandoverMessage> Member::fetch(const FetchMessage& request, std::stop_token stop) {
  // A round may take hours.
  const auto answer = ask(request, kNever, std::move(stop));
  if (!answer) return std::nullopt;
  return std::get<HandoverMessage>(*answer);
}

std::vector<DonateMessage> Member::take_state_requests(int64_t round) {
  std::vector<DonateMessage> taken;
  const std::lock_guard lock(mutex_);
  std::erase_if(state_requests_, [&](const auto& entry) {
    if (entry.second.round == round) taken.push_back(entry.second);
    return entry.second.round <= round;
  });
  return taken;
}

bool Member::offer_state(const OfferMessage& offer, std::stop_token stop) {
  const double patience_seconds = deadlines().join_seconds;
  const double deadline_seconds = clock_.now_seconds() + patience_seconds;
  if (const auto answer = ask(offer, deadline_seconds, stop)) {
    return std::holds_alternative<StoredMessage>(*answer);
  }
  if (stop.stop_requested()) return false;
  throw PeerError("", fmt::format("coordinator at {} did not take the offer of the run's state "
                                  "within {} s",
                                  coordinator(), patience_seconds));
}

// Without a deadline too: every site's exchange has its own. The vote belongs to the generation in
// which the exchange was done, even if a newer one is known here.
bool Member::vote(const SyncId& sync, const std::string& theta_hash, std::stop_token stop) {
  int64_t generation = 0;
  {
    const std::lock_guard lock(mutex_);
    generation = generation_of_sync_;
  }
  const VoteMessage message{generation, sync.round, sync.fragment, theta_hash};
  std::optional<CoordinatorMessage> answer;
  while (!answer) {
    answer = ask(message, clock_.now_seconds() + deadlines().heartbeat_seconds);
    if (!answer && stop.stop_requested() && is_paused()) return false;
  }
  const auto* view = std::get_if<ViewMessage>(&*answer);
  if (view == nullptr) return true;
  // The loss may have followed the commit.
  if (SyncId{view->committed_round, view->committed_fragment} == sync) return true;
  throw_lost(*view);
}

bool Member::is_renewed(int64_t generation, const std::string& suspect, std::stop_token stop) {
  double patience_seconds = 0;
  double beat_seconds = 0;
  bool can_lose_one = false;
  const double start_seconds = clock_.now_seconds();
  {
    const std::lock_guard lock(mutex_);
    throw_failure();
    FARSTEP_CHECK(welcome_, "site {} has not joined yet", site_);
    const auto& sites = view_ ? view_->sites : welcome_->sites;
    can_lose_one = std::ssize(sites) > welcome_->min_sites;
    beat_seconds = deadlines_.heartbeat_seconds;
    patience_seconds = deadlines_.lost_after_seconds + kRenewalBeats * beat_seconds;
  }
  // A coordinator that was away gives the suspect the time to come back, too. But if the run ends
  // without the suspect, the caller's error may be all that is ever known.
  for (double from_seconds = start_seconds;; from_seconds = clock_.now_seconds()) {
    while (clock_.now_seconds() < from_seconds + patience_seconds) {
      if (ask(SuspectMessage{generation, suspect}, clock_.now_seconds() + beat_seconds))
        return true;
      if (stop.stop_requested() && is_paused()) return true;
    }
    const std::lock_guard lock(mutex_);
    if (pause_.empty() && (!can_lose_one || !was_away_since(from_seconds))) return false;
  }
}

bool Member::is_paused() const {
  const std::lock_guard lock(mutex_);
  return !pause_.empty();
}

std::vector<ViewMessage> Member::take_views(int64_t generation) {
  const std::lock_guard lock(mutex_);
  const auto later = std::ranges::find_if(
      new_views_, [&](const ViewMessage& view) { return view.generation > generation; });
  std::vector<ViewMessage> taken(new_views_.begin(), later);
  new_views_.erase(new_views_.begin(), later);
  return taken;
}

void Member::set_activity(int64_t round, int64_t step, const std::string& text) {
  const std::lock_guard lock(mutex_);
  activity_.round = round;
  activity_.step = step;
  activity_.activity = text;
}

void Member::report(const MetricsMessage& metrics) {
  const std::lock_guard lock(mutex_);
  FARSTEP_CHECK(welcome_, "site {} reports before it has joined", site_);
  reports_.push_back(metrics);
  lines_.wake();
}

void Member::report_standing(int64_t generation, const std::string& site) {
  const std::lock_guard lock(mutex_);
  if (generation == generation_locked()) reports_.push_back(SuspectMessage{generation, site, true});
}

void Member::leave(Outcome outcome, const std::string& message) {
  bool is_reachable = false;
  {
    const std::lock_guard lock(mutex_);
    // Set first, so that the goodbye's own consequences do not reach the listener.
    is_leaving_ = true;
    // A silent coordinator would not answer the goodbye either. But one that comes back must not
    // count a site as lost that has done its part. One that has told this site that it is lost, as
    // it tells newcomers when the last member has left, waits for no goodbye and may have ended.
    const bool is_dismissed = failure_ && failure_->site == site_;
    is_reachable = outcome == Outcome::kDone ? !is_dismissed : !is_coordinator_silent();
  }
  const double leave_seconds = deadlines().leave_seconds;
  const double deadline_seconds = clock_.now_seconds() + leave_seconds;
  if (is_reachable && !ask(LeaveMessage{outcome, message}, deadline_seconds, {}, true)) {
    spdlog::warn("coordinator at {} did not answer the goodbye of site {} within {} s",
                 coordinator(), site_, leave_seconds);
  }
  const std::lock_guard lock(mutex_);
  // Every later call throws, as the coordinator does not know this site any more.
  fail(ErrorKind::kInternal, "", fmt::format("site {} has left the run", site_));
}

double Member::clock_offset_seconds() const {
  const std::lock_guard lock(mutex_);
  return clock_offset_seconds_;
}

void Member::on_peer_lost(int64_t generation, LossListener listener) {
  {
    const std::lock_guard lock(listener_mutex_);
    listener_ = std::move(listener);
    listener_generation_ = generation;
  }
  // A failure may be known already, and is then told at once.
  lines_.wake();
}

// ---- waiting for answers ----

std::optional<CoordinatorMessage> Member::ask(SiteMessage message, double deadline_seconds,
                                              std::stop_token stop, bool despite_failure) {
  return Asking(*this, {std::move(message)}, despite_failure)
      .wait(deadline_seconds, std::move(stop))
      .front();
}

Member::Asking::Asking(Member& member, std::vector<SiteMessage> messages, bool despite_failure)
    : member_(member), despite_failure_(despite_failure) {
  for (auto& message : messages) asked_.push_back({.message = std::move(message)});
  const std::lock_guard lock(member_.mutex_);
  if (!despite_failure_) member_.throw_failure();
  for (auto& request : asked_) member_.requests_.push_back(&request);
  member_.lines_.wake();
}

// Under the lock: the thread must not answer a request that has gone.
Member::Asking::~Asking() {
  const std::lock_guard lock(member_.mutex_);
  std::erase_if(member_.requests_, [this](const Request* request) {
    return request >= asked_.data() && request < asked_.data() + asked_.size();
  });
}

std::vector<std::optional<CoordinatorMessage>> Member::Asking::wait(double deadline_seconds,
                                                                    std::stop_token stop) {
  std::unique_lock lock(member_.mutex_);
  const auto are_all_answered = [this] {
    return std::ranges::all_of(asked_,
                               [](const Request& request) { return request.answer.has_value(); });
  };
  member_.wait(lock, deadline_seconds, std::move(stop),
               [&] { return are_all_answered() || (member_.failure_ && !despite_failure_); });
  if (!are_all_answered() && !despite_failure_) member_.throw_failure();
  std::vector<std::optional<CoordinatorMessage>> answers;
  for (const auto& request : asked_) answers.push_back(request.answer);
  return answers;
}

void Member::wait(std::unique_lock<std::mutex>& lock, double deadline_seconds, std::stop_token stop,
                  const std::function<bool()>& condition) {
  if (deadline_seconds == kNever) {
    // wait_for() cannot take an infinite time.
    changed_.wait(lock, std::move(stop), condition);
  } else {
    changed_.wait_for(lock, std::move(stop),
                      std::chrono::duration<double>(deadline_seconds - clock_.now_seconds()),
                      condition);
  }
}

bool Member::has_failed() const {
  const std::lock_guard lock(mutex_);
  return failure_.has_value();
}

void Member::throw_if_failed() const {
  const std::lock_guard lock(mutex_);
  throw_failure();
}

// Each kind keeps its class, as it decides the exit code.
void Member::throw_failure() const {
  if (!failure_) return;
  switch (failure_->kind) {
    case ErrorKind::kConfig:
      throw ConfigError(failure_->message);
    case ErrorKind::kData:
      throw DataError(failure_->message);
    case ErrorKind::kPeer:
      if (failure_->is_left_behind) throw LeftBehindError(failure_->message);
      throw PeerError(failure_->site, failure_->message);
    case ErrorKind::kDivergence:
      throw DivergenceError(failure_->message);
    case ErrorKind::kInternal:
      throw InternalError(failure_->message);
  }
}

int64_t Member::generation() const {
  const std::lock_guard lock(mutex_);
  FARSTEP_CHECK(welcome_, "site {} has not joined yet", site_);
  return generation_locked();
}

void Member::throw_lost(const ViewMessage& view) {
  throw PeerError(view.lost, loss_text(view));
}

std::string Member::loss_text(const ViewMessage& view) {
  return view.lost.empty() ? view.reason : fmt::format("site {}: {}", view.lost, view.reason);
}

// Members put values for the generation that they begin. The lost one may not have put its own.
void Member::throw_if_outdated() const {
  if (!view_ || view_->lost_generation <= std::max(welcome_->generation, generation_of_sync_)) {
    return;
  }
  throw_lost(*view_);
}

int64_t Member::generation_locked() const {
  return view_ ? view_->generation : welcome_->generation;
}

Deadlines Member::deadlines() const {
  const std::lock_guard lock(mutex_);
  return deadlines_;
}

std::string Member::coordinator() const {
  const std::lock_guard lock(mutex_);
  return coordinator_locked();
}

}  // namespace farstep::wan
