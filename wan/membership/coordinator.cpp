#include "wan/membership/coordinator.h"

#include <spdlog/spdlog.h>

#include <chrono>

#include "trainer/base/error.h"

namespace farstep {

namespace {

// A refusal quotes what it refuses, which may be megabytes of a stranger's.
constexpr std::size_t kMostOfRefusal = 500;

}  // namespace

Coordinator::Coordinator(const std::string& endpoint, ServedRun run, const Deadlines& deadlines,
                         Clock& clock)
    : clock_(clock),
      // Half a heartbeat, so that a lost site is noticed at most that much too late.
      tick_seconds_(deadlines.heartbeat_seconds / 2),
      strangers_(clock),
      roster_(std::move(run), deadlines),
      socket_(ControlSocket::Role::kCoordinator, endpoint, deadlines),
      endpoint_(socket_.endpoint()),
      thread_([this] { this->run(); }) {}

Coordinator::~Coordinator() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  socket_.wake();
  thread_.join();
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
    spdlog::info("coordinator listens at {}", endpoint_);
    while (true) {
      {
        const std::lock_guard lock(mutex_);
        if (stopping_) return;
      }
      socket_.wait(tick_seconds_);
      // All messages are handled before the check for silence. Heartbeats that wait in the socket
      // must not count as missing after a pause of this process.
      while (const auto frames = socket_.receive()) handle(*frames);
      deliver(roster_.tick(clock_.unix_seconds()));
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

// A stranger's message must not disturb the run. Bytes that are no message are dropped; a wrong
// message of a site is answered with an error.
void Coordinator::handle(const ControlSocket::Frames& frames) {
  if (frames.size() != 2) {
    strangers_.warn("dropped a message",
                    fmt::format("it has {} frames, a site's has one", frames.size() - 1));
    return;
  }
  const std::string& connection = frames[0];
  try {
    const auto message = decode_site_message(frames[1]);
    deliver(roster_.receive(connection, message, clock_.unix_seconds()));
  } catch (const DataError& error) {
    strangers_.warn("dropped a stranger's message", error.what());
  } catch (const ConfigError& error) {
    strangers_.warn("refused a message", error.what());
    deliver({{connection, ErrorMessage{printable(error.what(), kMostOfRefusal)}}});
  }
}

// A message to a connection that has gone is dropped; the site repeats its request.
void Coordinator::deliver(const std::vector<Outgoing>& messages) {
  for (const auto& [connection, message] : messages) {
    if (const auto* refusal = std::get_if<RefusedMessage>(&message)) {
      strangers_.warn("refused a site", refusal->message);
    }
    socket_.send({connection, encode(message)});
  }
}

// Copies the roster's state for the other threads, and logs its changes.
void Coordinator::publish() {
  const std::lock_guard lock(mutex_);
  if (!has_begun_ && roster_.has_begun()) spdlog::info("coordinator: all sites have joined");
  if (change_ != roster_.newest_change()) spdlog::warn("coordinator: {}", roster_.newest_change());
  change_ = roster_.newest_change();
  if (failure_ != roster_.failure()) spdlog::warn("coordinator: {}", roster_.failure());
  if (!is_over_ && roster_.is_over()) spdlog::info("coordinator: all sites have left");
  if (summary_ != roster_.round_summary()) spdlog::info("{}", roster_.round_summary());
  summary_ = roster_.round_summary();
  has_begun_ = roster_.has_begun();
  failure_ = roster_.failure();
  is_over_ = roster_.is_over();
  changed_.notify_all();
}

}  // namespace farstep
