// How a site joins the run, and what it tells the user while that takes long.
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <variant>

#include "wan/membership/member.h"

namespace farstep::wan {

namespace {

// Often enough to show a user that the program lives, and rare enough to read.
constexpr double kReportSeconds = 5;  // between two log lines that explain a long join

}  // namespace

// Waits in intervals, to log the missing sites. The thread repeats the request meanwhile.
std::optional<Welcome> Member::join(const JoinRequest& request, std::stop_token stop) {
  RegisterMessage message;
  static_cast<JoinRequest&>(message) = request;
  message.site = site_;
  {
    const std::lock_guard lock(mutex_);
    registration_ = message;
  }
  const double start_seconds = clock_.now_seconds();
  // The defaults or the own run file's: the run's deadlines come with the welcome.
  const double join_seconds = deadlines().join_seconds;
  const double deadline_seconds = start_seconds + join_seconds;
  Asking asking(*this, {message});
  std::optional<CoordinatorMessage> answer;
  while (!answer) {
    const double now_seconds = clock_.now_seconds();
    if (now_seconds >= deadline_seconds) {
      throw NotJoinedError(fmt::format("site {} could not join within {} s: {}", site_,
                                       join_seconds, obstacle_to_joining()));
    }
    answer = asking.wait(std::min(deadline_seconds, now_seconds + kReportSeconds), stop).front();
    if (stop.stop_requested()) return std::nullopt;
    if (!answer && clock_.now_seconds() < deadline_seconds) {
      spdlog::info("joining since {:.0f} s: {}", clock_.now_seconds() - start_seconds,
                   obstacle_to_joining());
    }
  }
  if (const auto* refusal = std::get_if<RefusedMessage>(&*answer)) {
    const auto text = fmt::format("coordinator at {} refused site {}: {}", coordinator(), site_,
                                  refusal->message);
    if (refusal->is_temporary) throw PeerError("", text);
    throw ConfigError(text);
  }
  std::unique_lock lock(mutex_);  // the first heartbeat's answer brings the clock offset
  wait(lock, deadline_seconds, stop,
       [this] { return failure_ || best_round_trip_seconds_ < kNever; });
  throw_failure();
  if (!welcome_->left.empty()) spdlog::warn("{}", welcome_->left);
  return welcome_;
}

std::string Member::obstacle_to_joining() const {
  const std::lock_guard lock(mutex_);
  if (is_coordinator_silent()) {
    const auto obstacle = lines_.obstacle(current_);
    return fmt::format(
        "coordinator at {} does not answer; is it running (it ends with its run), is its port "
        "open, and do both sides have network.keys, or neither?{}{}",
        coordinator_locked(), obstacle.empty() ? "" : " ", obstacle);
  }
  if (missing_.empty() && current_ > 0) {
    return fmt::format("coordinator at {} stands by, and a run begins at the first, {}",
                       coordinator_locked(), lines_.name(0));
  }
  return fmt::format("coordinator at {} still waits for {}", coordinator_locked(),
                     fmt::join(missing_, ", "));
}

}  // namespace farstep::wan
