// The member's thread: it sends, waits for messages, and handles them. What it needs of files, the
// other thread does meanwhile.
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "wan/membership/member.h"

namespace farstep::wan {

namespace {

// A coordinator that is restarted is back before, and a line may fail for so long.
constexpr double kStandByBeats = 10;
// Of the records, when a site leaves: far more than comes between two heartbeats.
constexpr int kLastPieces = 16;
constexpr double kLastPiecesShare = 0.5;  // of leave_seconds, for reading them

}  // namespace

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
      lines_.wait(next_beat_seconds_ - clock_.now_seconds());
      while (const auto received = lines_.receive()) handle(*received);
      // After the messages, since one of them may bring the failure.
      check_coordinator();
      keep_term();
      tell_listener();
    }
  } catch (const std::exception& error) {
    fail_by(error);
    tell_listener();
  }
}

void Member::fail_by(const std::exception& error) {
  const auto* known = dynamic_cast<const Error*>(&error);
  const std::lock_guard lock(mutex_);
  if (known != nullptr) {
    fail(known->kind(), "", error.what());
  } else {
    fail(ErrorKind::kInternal, "",
         fmt::format("site {}, at its coordinator: {}", site_, error.what()));
  }
}

void Member::submit(std::function<void()> task) {
  files_.submit([this, task = std::move(task)] {
    try {
      task();
    } catch (const std::exception& error) {
      fail_by(error);
      lines_.wake();  // the other thread tells the listener
    }
  });
}

void Member::send_due_messages() {
  const std::lock_guard lock(mutex_);
  const double now_seconds = clock_.now_seconds();
  const bool is_beat = now_seconds >= next_beat_seconds_;
  if (is_beat) {
    next_beat_seconds_ = now_seconds + deadlines_.heartbeat_seconds;
    note_lost_requests();
  }
  // Reports are for the coordinator's log alone, so they are sent once and may be lost.
  for (const auto& report : reports_) lines_.send(current_, report);
  reports_.clear();
  if (!pieces_.empty()) pieces_seconds_ = clock_.unix_seconds();
  for (const auto& piece : pieces_) lines_.send(current_, piece);
  pieces_.clear();
  // Before the welcome the repeated registration is the sign of life. Over a new connection the
  // coordinator expects one soon, and a long request takes its time.
  if (is_beat && welcome_ && !is_leaving_) {
    activity_.sent_seconds = clock_.unix_seconds();
    activity_.generation = generation_locked();
    activity_.term = kept_term_;
    lines_.send_to_all(activity_);
    const bool asks_stand_bys = !returning_ && asks_stand_bys_in_pause();
    const bool is_new = !std::exchange(asks_stand_bys_, asks_stand_bys);
    if (asks_stand_bys) send_registration(registration_of_member(), is_new, current_);
  }
  if (returning_) returning_->message = registration_of_member();
  for (auto* request : requests_) {
    if (!is_due(*request, is_beat)) continue;
    const bool is_goodbye = std::holds_alternative<LeaveMessage>(request->message);
    if (is_goodbye && !request->repetition.is_sent() && holds_back_goodbye()) continue;
    send(*request);
  }
}

void Member::note_lost_requests() {
  for (std::size_t line = 0; line < lines_.size(); ++line) {
    if (!lines_.take_loss(line)) continue;
    for (auto* request : requests_) {
      // The lines know of registrations.
      const bool goes_there =
          line == current_ || std::holds_alternative<LeaveMessage>(request->message);
      if (goes_there && !is_registration(*request)) request->repetition.note_loss();
    }
  }
}

bool Member::is_registration(const Request& request) {
  return std::holds_alternative<RegisterMessage>(request.message);
}

bool Member::is_due(const Request& request, bool is_beat) const {
  if (request.answer) return false;  // and its caller has not taken that yet
  if (!request.repetition.is_sent()) return is_beat || !waits_for_term(request);
  if (!is_beat || is_registration(request)) return is_beat;
  const double now_seconds = clock_.unix_seconds();
  // A site that leaves sends no heartbeats.
  return is_leaving_ ? request.repetition.is_paced(now_seconds)
                     : request.repetition.is_due(now_seconds, answered_beat_seconds_);
}

void Member::send_records(std::filesystem::path file) {
  const std::lock_guard lock(mutex_);
  records_ = std::make_shared<RecordsReader>(std::move(file));
}

// A coordinator that serves the run in place of the one before has another copy of the records.
void Member::read_pieces(int most) {
  if (!records_ || is_reading_) return;
  is_reading_ = true;
  submit([this, records = records_, state = sent_records_, line = current_, most] {
    std::vector<RecordsMessage> pieces;
    auto reached = state;
    while (std::ssize(pieces) < most) {
      auto piece = records->next(reached);
      if (!piece) break;
      reached = {.bytes = piece->position + static_cast<int64_t>(piece->text.size()),
                 .head = records->head()};
      pieces.push_back(std::move(*piece));
    }
    const std::lock_guard lock(mutex_);
    is_reading_ = false;
    if (line == current_ && !pieces.empty()) {
      sent_records_ = reached;
      std::ranges::move(pieces, std::back_inserter(pieces_));
    }
    lines_.wake();
  });
}

// What the site recorded since the last heartbeat comes before its goodbye. A disk that hangs must
// not take the goodbye's own time.
bool Member::holds_back_goodbye() {
  const double now_seconds = clock_.now_seconds();
  if (!goodbye_limit_seconds_) {
    goodbye_limit_seconds_ = now_seconds + kLastPiecesShare * deadlines_.leave_seconds;
  }
  if (!is_reading_ && !std::exchange(has_asked_last_pieces_, true)) read_pieces(kLastPieces);
  return is_reading_ && now_seconds < *goodbye_limit_seconds_;
}

// All coordinators hear who takes part and who leaves, since the one that serves the run may be
// another one soon. What a coordinator has to do, only that one hears.
void Member::send(Request& request) {
  std::size_t bytes = 0;
  if (is_registration(request)) {
    // How it is repeated, the lines know.
    send_registration(std::get<RegisterMessage>(request.message), !request.repetition.is_sent());
  } else if (std::holds_alternative<LeaveMessage>(request.message)) {
    bytes = lines_.send_to_all(request.message);
  } else {
    bytes = lines_.send(current_, request.message);
  }
  request.repetition.note_copy(clock_.unix_seconds(), bytes, deadlines_.heartbeat_seconds);
}

void Member::send_registration(RegisterMessage message, bool is_new,
                               std::optional<std::size_t> but) {
  message.term = kept_term_;
  lines_.register_at_all(message, is_new, clock_.unix_seconds(), deadlines_.heartbeat_seconds, but);
}

// The effects of a message come before its answers, so that a thread with an answer sees them.
void Member::handle(const CoordinatorLines::Received& received) {
  const auto& message = received.message;
  const std::lock_guard lock(mutex_);
  if (!is_heard(received)) return;
  // A member's coordinator is there only when it knows the member.
  const bool knows_member = !(std::holds_alternative<UnknownSiteMessage>(message) ||
                              std::holds_alternative<WaitingMessage>(message) ||
                              std::holds_alternative<ClaimMessage>(message));
  if (!welcome_ || knows_member) {
    if (welcome_ && is_coordinator_silent()) back_seconds_ = clock_.now_seconds();
    heard_seconds_ = clock_.now_seconds();
  }
  std::visit([this](const auto& content) { on(content); }, message);
  for (auto* request : requests_) {
    if (!request->answer && answers(message, request->message)) request->answer = message;
  }
  end_return(knows_member);
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

// The promise is the next registration that has the claim's term. It goes out when that is written.
void Member::on(const ClaimMessage&) {
  if (welcome_) return_to_run("is about to serve the run");
}

void Member::on(const HeartbeatAckMessage& message) {
  if (pause_.empty() && !message.pause.empty()) {
    spdlog::warn("the run pauses, because fewer than {} sites are there; it waits {} s at most: {}",
                 welcome_ ? welcome_->min_sites : 1, deadlines_.pause_seconds, message.pause);
  } else if (!pause_.empty() && message.pause.empty()) {
    spdlog::info("the run goes on");
  }
  if (pause_.empty()) pause_begin_seconds_ = clock_.now_seconds();
  pause_ = message.pause;
  answered_beat_seconds_ = std::max(answered_beat_seconds_, message.sent_seconds);
  // An answer to an earlier heartbeat does not count the piece that is on its way.
  if (message.sent_seconds >= pieces_seconds_) {
    sent_records_ = {.bytes = message.records, .head = message.records_head};
    read_pieces(1);
  }
  const double now_seconds = clock_.unix_seconds();
  const double round_trip_seconds = now_seconds - message.sent_seconds;
  // The offset's error is at most half the round trip, so the shortest one gives the best figure.
  if (round_trip_seconds >= best_round_trip_seconds_) return;
  best_round_trip_seconds_ = round_trip_seconds;
  clock_offset_seconds_ = message.coordinator_seconds - (message.sent_seconds + now_seconds) / 2;
}

void Member::on(const CommittedMessage& message) {
  committed_ = SyncId{message.round, message.fragment};
}

// The training thread looks for it between two steps.
void Member::on(const DonateMessage& message) {
  state_requests_[message.newcomer.site] = message;
}

void Member::on(const ViewMessage& message) {
  if (!welcome_ || message.generation <= generation_locked()) return;  // a repetition
  const bool has_lost = message.lost_generation > generation_locked();
  if (message.committed_round >= 0) {
    committed_ = SyncId{message.committed_round, message.committed_fragment};
  }
  view_ = message;
  new_views_.push_back(message);
  // The coordinator has forgotten who waits for values. The members of the generation before do so
  // no longer if it has lost a site.
  for (auto* request : requests_) {
    if (request->answer || !std::holds_alternative<GetMessage>(request->message)) continue;
    if (has_lost) {
      request->answer = message;
    } else {
      request->repetition.note_loss();
    }
  }
  const auto names = fmt::format("{}", fmt::join(message.sites, ", "));
  if (has_lost) {
    spdlog::warn("{}; generation {} goes on with {}", loss_text(message), message.generation,
                 names);
  } else {
    spdlog::info("site {} has joined; generation {} goes on with {}", message.joined,
                 message.generation, names);
  }
}

void Member::on(const PeerLostMessage& message) {
  if (message.site.empty()) heard_seconds_ = -kNever;  // it ends, and answers no goodbye
  const auto who = message.site.empty() ? fmt::format("coordinator at {}", coordinator_locked())
                                        : fmt::format("site {}", message.site);
  fail(ErrorKind::kPeer, message.site, fmt::format("{}: {}", who, message.reason));
}

// Sites that compute the same step from the same bytes hold the same weights. So a difference is a
// defect or a memory fault, not the loss of a peer.
void Member::on(const StopMessage& message) {
  fail(ErrorKind::kInternal, "", message.reason);
}

// Before the welcome join() continues to register; a member does so by itself.
void Member::on(const UnknownSiteMessage& message) {
  if (!welcome_) return;
  return_to_run(fmt::format("does not count site {} as a member: {}", site_, message.message));
}

// A refused message before the welcome is a wrong configuration; afterwards it is a defect.
void Member::on(const ErrorMessage& message) {
  fail(welcome_ ? ErrorKind::kInternal : ErrorKind::kConfig, "",
       fmt::format("coordinator at {} refused a message: {}", coordinator_locked(),
                   message.message));
}

// Any message counts as a sign of life, not only heartbeat answers.
void Member::check_coordinator() {
  const std::lock_guard lock(mutex_);
  if (!welcome_) return;
  if (lines_.size() > 1 && silence_seconds() > stand_by_patience_seconds()) {
    return_to_run(fmt::format("has been silent for {:.0f} s", silence_seconds()));
  }
  if (silence_seconds() <= deadlines_.coordinator_lost_after_seconds) return;
  fail(ErrorKind::kPeer, "",
       fmt::format("coordinator at {} has been silent for more than {} s", coordinator_locked(),
                   deadlines_.coordinator_lost_after_seconds));
}

double Member::stand_by_patience_seconds() const {
  return kStandByBeats * deadlines_.heartbeat_seconds;
}

bool Member::asks_stand_bys_in_pause() const {
  return lines_.size() > 1 && !pause_.empty() &&
         clock_.now_seconds() - pause_begin_seconds_ > stand_by_patience_seconds();
}

void Member::fail(ErrorKind kind, const std::string& site, const std::string& message,
                  bool is_left_behind) {
  // The first failure is the cause; later ones are often its consequences.
  if (!failure_) failure_ = Failure{kind, site, message, is_left_behind};
  changed_.notify_all();
}

void Member::tell_listener() {
  std::optional<Failure> failure;
  std::optional<ViewMessage> view;
  {
    const std::lock_guard lock(mutex_);
    if (is_leaving_) return;
    failure = failure_;
    view = view_;
  }
  // Not under mutex_: the listener aborts transports, whose threads may call the member.
  const std::lock_guard lock(listener_mutex_);
  const bool has_lost_member = view && view->lost_generation > listener_generation_;
  if (!failure && !has_lost_member) return;
  const auto listener = std::exchange(listener_, nullptr);
  if (!listener) return;
  if (failure) {
    listener(failure->site, failure->message);
  } else {
    listener(view->lost, loss_text(*view));
  }
}

}  // namespace farstep::wan
