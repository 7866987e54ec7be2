// Runs a program of the user's for each alarm that begins: a mail, a message, a webhook by curl.
// Not thread-safe.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/base/clock.h"
#include "trainer/base/system/child_process.h"
#include "trainer/watch/alarms.h"

namespace farstep {

class AlarmCommand {
 public:
  // `program` is looked up in PATH if it is a name without a slash; empty: alarms are logged only.
  AlarmCommand(std::string program, const Clock& clock)
      : program_(std::move(program)), clock_(clock) {}

  // Takes the alarms of now. Each that was not there before is logged, and its program is started
  // with the arguments RUN KIND SUBJECT TEXT, one after the other. One that runs for longer than 30
  // s is ended. Never throws because of the program.
  void update(const std::string& run, std::span<const Alarm> alarms);

  // Returns how many programs have ended, in any way.
  int64_t ended() const { return ended_; }

 private:
  void look_after();

  const std::string program_;
  const Clock& clock_;
  std::vector<Alarm> present_;
  std::deque<std::vector<std::string>> waiting_;  // arguments of the next programs
  std::unique_ptr<ChildProcess> process_;
  double started_seconds_ = 0;
  int64_t ended_ = 0;
};

}  // namespace farstep
