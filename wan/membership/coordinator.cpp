// The coordinator's thread: it takes messages, gives them to the roster, writes the journal, and
// only then answers. So an answer never promises what a restart would have forgotten.
#include "wan/membership/coordinator.h"

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/system/printable.h"

namespace farstep::wan {

namespace {

// A refusal quotes the refused text, which may be megabytes from a stranger.
constexpr std::size_t kMostOfRefusal = 500;
constexpr int kMostMessages = 100;  // that are answered together
// The most that is read of a connection before it is known to be a site's: a registration. It has
// the site's copy of the run, and of a member's run all profiles too, so it grows with the sites.
constexpr std::size_t kMostOfStranger = 64 * 1024, kMostOfStrangerPerSite = 16 * 1024;
// Connections that have their turn although the time is up: far more than a run has sites, and soon
// done even if all are strangers'.
constexpr std::size_t kMostTurns = 1000;
// Of what a site says in words, for the logs and records of the others.
constexpr std::size_t kMostOfWords = 1000;

}  // namespace

Coordinator::Coordinator(const std::string& endpoint, ServedRun run, const Deadlines& deadlines,
                         Clock& clock, const std::filesystem::path& journal,
                         CoordinatorVisitors visitors, std::filesystem::path records)
    : clock_(clock),
      run_(std::move(run)),
      deadlines_(deadlines),
      // Half a heartbeat, so that a lost site is noticed at most that much too late.
      tick_seconds_(deadlines.heartbeat_seconds / 2),
      knows_visitors_(visitors.site_at != nullptr),
      has_closed_(std::move(visitors.has_closed)),
      strangers_("coordinator", clock),
      records_(std::move(records)),
      journal_(journal.empty() ? nullptr : std::make_unique<KeptJournal>(journal, run_, clock)),
      roster_(std::make_unique<Roster>(
          run_, deadlines_, journal_ ? journal_->start() : RosterState{}, clock.unix_seconds())),
      socket_(ControlSocket::Role::kCoordinator, endpoint, deadlines, std::move(visitors.site_at)),
      endpoint_(socket_.endpoint()),
      has_begun_(roster_->has_begun()),
      thread_(begin()) {}

Coordinator::~Coordinator() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  socket_.wake();
  thread_.join();
}

// The sites must not hear of a term before it is on disk.
std::thread Coordinator::begin() {
  if (journal_) journal_->begin(roster_->state());
  return std::thread([this] { run(); });
}

void Coordinator::end_run(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  end_reason_ = reason;
  socket_.wake();
}

void Coordinator::hand_over(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  hand_over_reason_ = reason;
  socket_.wake();
}

bool Coordinator::serves_run() const {
  const std::lock_guard lock(mutex_);
  return has_begun_;
}

bool Coordinator::wait_until_over(double timeout_seconds) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(timeout_seconds),
                    [this] { return is_over_ || !defect_.empty(); });
  if (!defect_.empty()) throw InternalError("the coordinator failed: " + defect_);
  return is_over_;
}

std::string Coordinator::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

// All work on the roster happens on this thread, so the roster needs no lock.
void Coordinator::run() {
  try {
    spdlog::info("coordinator listens {}",
                 knows_visitors_ ? "behind the secure port" : "at " + endpoint_);
    if (roster_->has_begun()) {
      spdlog::info("coordinator: goes on with the run by its journal, in term {}", roster_->term());
    }
    while (true) {
      std::string end_reason, hand_over_reason;
      bool is_stopping = false;
      {
        const std::lock_guard lock(mutex_);
        end_reason = std::exchange(end_reason_, {});
        hand_over_reason = std::exchange(hand_over_reason_, {});
        is_stopping = stopping_;
      }
      if (!end_reason.empty()) answer(roster_->end(end_reason));
      if (!hand_over_reason.empty()) deliver(roster_->hand_over(hand_over_reason));
      if (is_stopping) return finish();
      socket_.wait(tick_seconds_);
      serve();
      strangers_.tick();
      publish();
    }
  } catch (const std::exception& error) {
    spdlog::error("the coordinator failed: {}", error.what());
    const std::lock_guard lock(mutex_);
    defect_ = error.what();
    changed_.notify_all();
  }
}

// Messages are handled before the check for silence. Heartbeats that wait in the socket must not
// count as missing after a pause of this process, nor while strangers take its time. But a flood
// must not stop the clock. Connections take turns: when one comes again, all that have sent
// something have been heard, and the time may be up. Silence is then judged as of the begin,
// however long their turns took. The answers to many messages need one write of the journal.
void Coordinator::serve() {
  const double begin_unix_seconds = clock_.unix_seconds();
  const double end_seconds = clock_.now_seconds() + tick_seconds_;
  std::set<std::string> heard;
  bool goes_on = true, all_had_turns = false;
  while (goes_on) {
    std::vector<Outgoing> answers;
    for (int i = 0; i < kMostMessages && goes_on; ++i) {
      const auto received = socket_.receive();
      if (received) {
        const bool is_new = heard.insert(received->frames.front()).second;
        all_had_turns |= !is_new || heard.size() == kMostTurns;
        handle(*received, answers);
      }
      goes_on = received && (!all_had_turns || clock_.now_seconds() < end_seconds);
    }
    answer(answers);
    if (goes_on) socket_.wait(0);  // new connections do not wait for the end of a flood either
  }
  note_broken();
  answer(roster_->tick(begin_unix_seconds));
  // New processes go on from their checkpoints.
  if (roster_->is_abandoned()) {
    forget_run("no site's process has come back to the run; a new run begins");
  }
}

// What a site sent before the end of its line may come later than the news. So the roster hears of
// a closed line again and again, until it is made anew.
void Coordinator::note_broken() {
  const double now_seconds = clock_.unix_seconds();
  for (const auto& connection : socket_.take_broken()) roster_->on_broken(connection, now_seconds);
  if (!has_closed_) return;
  for (const auto& site : roster_->connected_sites()) {
    if (has_closed_(site)) roster_->on_closed_line(site, now_seconds);
  }
}

void Coordinator::forget_run(const std::string& reason) {
  spdlog::warn("coordinator: {}", reason);
  const RosterState state{.term = run_.term_after(roster_->term()), .run = {}};
  roster_ = std::make_unique<Roster>(run_, deadlines_, state, clock_.unix_seconds());
  answer({});
}

// What the answers depend on is on disk before they leave.
void Coordinator::answer(const std::vector<Outgoing>& messages) {
  if (journal_) journal_->save(roster_->state());
  deliver(messages);
}

// Of a run that is over, nothing is to go on.
void Coordinator::finish() {
  if (!journal_) return;
  if (roster_->is_over() || !roster_->failure().empty()) journal_->remove();
}

namespace {

// After its registration a site is known by its connection.
void require_own_name(const SiteMessage& message, const std::string& site) {
  const auto* registration = std::get_if<RegisterMessage>(&message);
  if (registration == nullptr || registration->site == site) return;
  throw ConfigError(fmt::format("site {} registers with the key of site {}: use its own key",
                                registration->site, site));
}

// The other sites get these words with their news of the site.
void make_plain(SiteMessage& message) {
  if (auto* leave = std::get_if<LeaveMessage>(&message)) {
    leave->message = one_line(leave->message, kMostOfWords);
  } else if (auto* heartbeat = std::get_if<HeartbeatMessage>(&message)) {
    heartbeat->activity = one_line(heartbeat->activity, kMostOfWords);
  }
}

}  // namespace

// A stranger's message must not disturb the run. Bytes that are no message are dropped; a wrong
// message of a site is answered with an error.
void Coordinator::handle(const ControlSocket::Received& received, std::vector<Outgoing>& answers) {
  const auto& frames = received.frames;
  if (frames.size() != 2) {
    strangers_.warn("dropped a message",
                    fmt::format("it has {} frames, a site's has one", frames.size() - 1));
    socket_.note_strange_message();
    return;
  }
  const std::string& connection = frames[0];
  // Before it is parsed, which takes many times the memory. With keys its name is known before.
  const auto most = kMostOfStranger + kMostOfStrangerPerSite * run_.sites.size();
  if (frames[1].size() > most && !knows_visitors_ && roster_->site_at(connection).empty()) {
    strangers_.warn("dropped a message",
                    fmt::format("it has {} bytes, and its sender is no site of "
                                "the run yet, which sends {} at most",
                                frames[1].size(), most));
    socket_.note_strange_message();
    return;
  }
  try {
    auto message = decode_site_message(frames[1]);
    make_plain(message);
    if (knows_visitors_) require_own_name(message, received.site);
    const auto more = roster_->receive(connection, message, clock_.unix_seconds());
    if (std::ranges::any_of(more, [&](const Outgoing& answer) {
          return answer.connection == connection &&
                 std::holds_alternative<RefusedMessage>(answer.message);
        })) {
      socket_.note_strange_message();
    }
    answers.insert(answers.end(), more.begin(), more.end());
    if (const auto* records = std::get_if<RecordsMessage>(&message)) {
      if (const auto site = roster_->site_at(connection); !site.empty()) {
        records_.take(site, *records);
      }
    }
    if (roster_->is_superseded()) {
      forget_run(roster_->failure() + "; this one stands by, and goes on if they come to it");
    }
  } catch (const DataError& error) {
    strangers_.warn("dropped a stranger's message", error.what());
    socket_.note_strange_message();
  } catch (const ConfigError& error) {
    strangers_.warn("refused a message", error.what());
    socket_.note_strange_message();
    answers.push_back({connection, ErrorMessage{printable(error.what(), kMostOfRefusal)}});
  }
}

// A message to a connection that has gone is dropped; the site repeats its request.
void Coordinator::deliver(std::vector<Outgoing> messages) {
  for (auto& [connection, message] : messages) {
    // The roster does not know how many bytes of a site's records are stored.
    if (auto* answer = std::get_if<HeartbeatAckMessage>(&message)) {
      const auto state = records_.state(roster_->site_at(connection));
      answer->records = state.bytes;
      answer->records_head = state.head;
    }
    if (const auto* refusal = std::get_if<RefusedMessage>(&message)) {
      strangers_.warn("refused a site", refusal->message);
    }
    socket_.send({connection, encode(message)});
  }
}

// Copies the roster's state for the other threads, and logs its changes.
void Coordinator::publish() {
  const std::lock_guard lock(mutex_);
  if (!has_begun_ && roster_->has_begun() && roster_->newest_change().empty()) {
    spdlog::info("coordinator: the run begins with {}", fmt::join(roster_->members(), ", "));
    if (!roster_->left_states().empty()) spdlog::warn("coordinator: {}", roster_->left_states());
  }
  if (change_ != roster_->newest_change() && !roster_->newest_change().empty()) {
    spdlog::warn("coordinator: {}", roster_->newest_change());
  }
  change_ = roster_->newest_change();
  if (pause_ != roster_->pause_text()) {
    pause_ = roster_->pause_text();
    if (!pause_.empty()) {
      spdlog::warn("coordinator: the run pauses for {} s at most: {}", deadlines_.pause_seconds,
                   pause_);
    } else {
      spdlog::info("coordinator: the run goes on");
    }
  }
  if (failure_ != roster_->failure() && !roster_->failure().empty()) {
    spdlog::warn("coordinator: {}", roster_->failure());
  }
  if (!is_over_ && roster_->is_over()) spdlog::info("coordinator: all sites have left");
  if (summary_ != roster_->round_summary() && !roster_->round_summary().empty()) {
    spdlog::info("{}", roster_->round_summary());
  }
  summary_ = roster_->round_summary();
  has_begun_ = roster_->has_begun();
  failure_ = roster_->failure();
  is_over_ = roster_->is_over();
  changed_.notify_all();
}

}  // namespace farstep::wan
