#include "trainer/watch/alarm_command.h"

#include <signal.h>
#include <spdlog/spdlog.h>

#include <algorithm>

namespace farstep {

namespace {

constexpr double kMostSeconds = 30;        // of one program
constexpr std::size_t kMostWaiting = 100;  // a program that hangs must not fill the memory

}  // namespace

void AlarmCommand::update(const std::string& run, std::span<const Alarm> alarms) {
  for (const auto& alarm : alarms) {
    const auto is_known = [&](const Alarm& other) { return other.is_same(alarm); };
    if (std::ranges::any_of(present_, is_known)) continue;
    spdlog::warn("alarm: {}", alarm.text);
    if (program_.empty() || waiting_.size() >= kMostWaiting) continue;
    waiting_.push_back({run, std::string(name_of(alarm.kind)), alarm.subject, alarm.text});
  }
  present_.assign(alarms.begin(), alarms.end());
  look_after();
}

void AlarmCommand::look_after() {
  if (process_) {
    if (const auto code = process_->exit_code()) {
      if (*code != 0) spdlog::warn("{} ended with exit code {}", program_, *code);
    } else if (clock_.now_seconds() - started_seconds_ < kMostSeconds) {
      return;
    } else {
      spdlog::warn("{} did not end within {} s, and was ended", program_, kMostSeconds);
    }
    process_.reset();
    ++ended_;
  }
  if (waiting_.empty()) return;
  try {
    process_ = std::make_unique<ChildProcess>(program_, waiting_.front());
    started_seconds_ = clock_.now_seconds();
  } catch (const std::exception& error) {
    spdlog::warn("{} could not be started: {}", program_, error.what());
  }
  waiting_.pop_front();
}

}  // namespace farstep
