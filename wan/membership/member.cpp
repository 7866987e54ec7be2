#include "wan/membership/member.h"

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

namespace farstep {

namespace {

// Often enough to show a user that the program lives, and rare enough to read.
constexpr double kReportSeconds = 5;  // between two log lines that explain a long join

}  // namespace

Member::Member(const std::string& endpoint, std::string site, const Deadlines& deadlines,
               Clock& clock)
    : endpoint_(endpoint),
      site_(std::move(site)),
      clock_(clock),
      socket_(ControlSocket::Role::kSite, endpoint, deadlines),
      deadlines_(deadlines),
      thread_([this] { run(); }) {}

Member::~Member() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  socket_.wake();
  thread_.join();
}

// ---- calls of the site ----

// Waits in intervals, to log the missing sites. The thread repeats the request meanwhile.
std::optional<Welcome> Member::join(const JoinRequest& request, std::stop_token stop) {
  RegisterMessage message;
  static_cast<JoinRequest&>(message) = request;
  message.site = site_;
  const double start_seconds = clock_.now_seconds();
  // The defaults or the own run file's: the run's deadlines come with the welcome.
  const double join_seconds = deadlines().join_seconds;
  const double deadline_seconds = start_seconds + join_seconds;
  std::optional<CoordinatorMessage> answer;
  while (!answer) {
    const double now_seconds = clock_.now_seconds();
    if (now_seconds >= deadline_seconds) {
      throw PeerError("", fmt::format("site {} could not join within {} s: {}", site_, join_seconds,
                                      obstacle_to_joining()));
    }
    answer = ask(message, std::min(deadline_seconds, now_seconds + kReportSeconds), stop);
    if (stop.stop_requested()) return std::nullopt;
    if (!answer && clock_.now_seconds() < deadline_seconds) {
      spdlog::info("joining since {:.0f} s: {}", clock_.now_seconds() - start_seconds,
                   obstacle_to_joining());
    }
  }
  if (const auto* refusal = std::get_if<RefusedMessage>(&*answer)) {
    const auto text =
        fmt::format("coordinator at {} refused site {}: {}", endpoint_, site_, refusal->message);
    if (refusal->is_temporary) throw PeerError("", text);
    throw ConfigError(text);
  }
  std::unique_lock lock(mutex_);  // the first heartbeat's answer brings the clock offset
  wait(lock, deadline_seconds, stop,
       [this] { return failure_ || best_round_trip_seconds_ < kNever; });
  throw_failure();
  return welcome_;
}

void Member::put(const std::string& key, const std::string& value) {
  // The others may take as long to start as to join.
  const double patience_seconds = deadlines().join_seconds;
  if (!ask(PutMessage{key, to_hex(value)}, clock_.now_seconds() + patience_seconds)) {
    throw PeerError("", fmt::format("coordinator at {} did not take {} within {} s", endpoint_, key,
                                    patience_seconds));
  }
}

std::string Member::get(const std::string& key) {
  const double patience_seconds = deadlines().join_seconds;
  const auto answer = ask(GetMessage{key}, clock_.now_seconds() + patience_seconds);
  if (!answer) {
    throw PeerError(
        "", fmt::format("no site put {} at the coordinator within {} s", key, patience_seconds));
  }
  return from_hex(std::get<ValueMessage>(*answer).value);
}

std::optional<Go> Member::arrive(const SyncId& sync, const Contribution& contribution,
                                 const std::string& theta_hash, std::stop_token stop) {
  // Without a deadline: a slow peer is waited for, and the loss of one ends the wait.
  const auto answer =
      ask(ArriveMessage{generation(), sync.round, sync.fragment, contribution, theta_hash}, kNever,
          std::move(stop));
  if (!answer) return std::nullopt;
  return std::get<Go>(*answer);
}

// Without a deadline too: every site's exchange has its own.
void Member::vote(const SyncId& sync, const std::string& theta_hash) {
  ask(VoteMessage{generation(), sync.round, sync.fragment, theta_hash}, kNever);
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
  socket_.wake();
}

void Member::leave(Outcome outcome, const std::string& message) {
  bool is_reachable = false;
  {
    const std::lock_guard lock(mutex_);
    // Set first, so that the goodbye's own consequences do not reach the listener.
    is_leaving_ = true;
    // A silent coordinator would not answer the goodbye either.
    is_reachable = !is_coordinator_silent();
  }
  const double leave_seconds = deadlines().leave_seconds;
  const double deadline_seconds = clock_.now_seconds() + leave_seconds;
  if (is_reachable && !ask(LeaveMessage{outcome, message}, deadline_seconds, {}, true)) {
    spdlog::warn("coordinator at {} did not answer the goodbye of site {} within {} s", endpoint_,
                 site_, leave_seconds);
  }
  const std::lock_guard lock(mutex_);
  // Every later call throws, as the coordinator does not know this site any more.
  fail(ErrorKind::kInternal, "", fmt::format("site {} has left the run", site_));
}

double Member::clock_offset_seconds() const {
  const std::lock_guard lock(mutex_);
  return clock_offset_seconds_;
}

void Member::on_peer_lost(LossListener listener) {
  {
    const std::lock_guard lock(listener_mutex_);
    listener_ = std::move(listener);
  }
  // A failure may be known already, and is then told at once.
  socket_.wake();
}

// ---- waiting for answers ----

// The request is on this stack. The thread finds it in requests_, sends it, and stores its answer.
std::optional<CoordinatorMessage> Member::ask(SiteMessage message, double deadline_seconds,
                                              std::stop_token stop, bool despite_failure) {
  std::unique_lock lock(mutex_);
  if (!despite_failure) throw_failure();
  Request request{.message = std::move(message), .is_sent = false, .answer = {}};
  requests_.push_back(&request);
  socket_.wake();
  wait(lock, deadline_seconds, std::move(stop),
       [&] { return request.answer || (failure_ && !despite_failure); });
  // Under the lock: the thread must not answer a request whose stack frame has gone.
  std::erase(requests_, &request);
  if (!request.answer && !despite_failure) throw_failure();
  return std::move(request.answer);
}

template <typename Condition>
void Member::wait(std::unique_lock<std::mutex>& lock, double deadline_seconds, std::stop_token stop,
                  Condition condition) {
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
  return welcome_->generation;
}

Deadlines Member::deadlines() const {
  const std::lock_guard lock(mutex_);
  return deadlines_;
}

std::string Member::obstacle_to_joining() const {
  const std::lock_guard lock(mutex_);
  if (is_coordinator_silent()) {
    return fmt::format("coordinator at {} does not answer; is it running, and is its port open?",
                       endpoint_);
  }
  return fmt::format("coordinator at {} still waits for {}", endpoint_, fmt::join(missing_, ", "));
}

// ---- the member's thread ----

// One loop: sends all due messages, waits for a message or the next heartbeat, handles all
// messages, and checks for silence. An exception becomes the member's failure.
void Member::run() {
  try {
    while (true) {
      {
        const std::lock_guard lock(mutex_);
        if (is_stopping_) return;
      }
      // Sent before the wait, so that a new request goes out at once after its wake-up.
      send_due_messages();
      socket_.wait(next_beat_seconds_ - clock_.now_seconds());
      while (const auto frames = socket_.receive()) {
        handle(decode_coordinator_message(frames->front()));
      }
      // After the messages, since one of them may bring the failure.
      check_coordinator();
      tell_listener();
    }
  } catch (const std::exception& error) {
    const auto* known = dynamic_cast<const Error*>(&error);
    {
      const std::lock_guard lock(mutex_);
      fail(known != nullptr ? known->kind() : ErrorKind::kInternal, "",
           fmt::format("coordinator at {}: {}", endpoint_, error.what()));
    }
    tell_listener();
  }
}

void Member::send_due_messages() {
  const std::lock_guard lock(mutex_);
  const double now_seconds = clock_.now_seconds();
  const bool is_beat = now_seconds >= next_beat_seconds_;
  if (is_beat) next_beat_seconds_ = now_seconds + deadlines_.heartbeat_seconds;
  // Reports are for the coordinator's log alone, so they are sent once and may be lost.
  for (const auto& report : reports_) socket_.send({encode(report)});
  reports_.clear();
  for (auto* request : requests_) {
    // New requests go out at once; unanswered ones again with every heartbeat.
    if (request->is_sent && !is_beat) continue;
    socket_.send({encode(request->message)});
    request->is_sent = true;
  }
  // Before the welcome the repeated registration is the sign of life.
  if (is_beat && welcome_ && !is_leaving_) {
    activity_.sent_seconds = clock_.unix_seconds();
    socket_.send({encode(activity_)});
  }
}

// The effects of a message come before its answers, so that a thread with an answer sees them.
void Member::handle(const CoordinatorMessage& message) {
  const std::lock_guard lock(mutex_);
  heard_seconds_ = clock_.now_seconds();
  std::visit([this](const auto& content) { on(content); }, message);
  for (auto* request : requests_) {
    if (!request->answer && answers(message, request->message)) request->answer = message;
  }
  changed_.notify_all();
}

void Member::on(const Welcome& message) {
  if (welcome_) return;  // a repetition
  welcome_ = message;
  next_beat_seconds_ = 0;  // join() waits for the first heartbeat's answer
  if (const auto own = message.run.find("deadlines"); own != message.run.end()) {
    deadlines_ = read_json<Deadlines>(*own, "the run's deadlines");
  }
}

void Member::on(const WaitingMessage& message) {
  missing_ = message.missing;
}

void Member::on(const HeartbeatAckMessage& message) {
  const double now_seconds = clock_.unix_seconds();
  const double round_trip_seconds = now_seconds - message.sent_seconds;
  // The offset's error is at most half the round trip, so the shortest one gives the best figure.
  if (round_trip_seconds >= best_round_trip_seconds_) return;
  best_round_trip_seconds_ = round_trip_seconds;
  clock_offset_seconds_ = message.coordinator_seconds - (message.sent_seconds + now_seconds) / 2;
}

void Member::on(const PeerLostMessage& message) {
  fail(ErrorKind::kPeer, message.site, fmt::format("site {}: {}", message.site, message.reason));
}

// Sites that compute the same step from the same bytes hold the same weights. So a difference is a
// defect or a memory fault, not the loss of a peer.
void Member::on(const StopMessage& message) {
  fail(ErrorKind::kInternal, "", message.reason);
}

// Before the welcome join() continues to register, which is the remedy.
void Member::on(const UnknownSiteMessage& message) {
  if (!welcome_) return;
  fail(ErrorKind::kPeer, "",
       fmt::format("coordinator at {} does not count site {} as a member: {}", endpoint_, site_,
                   message.message));
}

// A refused message before the welcome is a wrong configuration; afterwards it is a defect.
void Member::on(const ErrorMessage& message) {
  fail(welcome_ ? ErrorKind::kInternal : ErrorKind::kConfig, "",
       fmt::format("coordinator at {} refused a message: {}", endpoint_, message.message));
}

bool Member::is_coordinator_silent() const {
  return clock_.now_seconds() - heard_seconds_ > deadlines_.lost_after_seconds;
}

// Any message counts as a sign of life, not only heartbeat answers.
void Member::check_coordinator() {
  const std::lock_guard lock(mutex_);
  if (!welcome_ || !is_coordinator_silent()) return;
  fail(ErrorKind::kPeer, "",
       fmt::format("coordinator at {} has been silent for more than {} s", endpoint_,
                   deadlines_.lost_after_seconds));
}

void Member::fail(ErrorKind kind, const std::string& site, const std::string& message) {
  // The first failure is the cause; later ones are often its consequences.
  if (!failure_) failure_ = Failure{kind, site, message};
  changed_.notify_all();
}

void Member::tell_listener() {
  std::optional<Failure> failure;
  {
    const std::lock_guard lock(mutex_);
    if (is_leaving_) return;
    failure = failure_;
  }
  if (!failure) return;
  // Not under mutex_: the listener aborts transports, whose threads may call the member.
  const std::lock_guard lock(listener_mutex_);
  if (const auto listener = std::exchange(listener_, nullptr)) {
    listener(failure->site, failure->message);
  }
}

}  // namespace farstep
