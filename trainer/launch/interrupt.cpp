#include "trainer/launch/interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <utility>

#include "trainer/base/error.h"

namespace farstep {

namespace {

// Under nohup SIGHUP is ignored, and stays so: a watcher would receive it all the same.
bool ignores_hangups() {
  struct sigaction hangup {};
  sigaction(SIGHUP, nullptr, &hangup);
  return hangup.sa_handler == SIG_IGN;
}

sigset_t watched_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  if (!ignores_hangups()) sigaddset(&signals, SIGHUP);
  sigaddset(&signals, SIGUSR1);  // the destructor sends it to end the watcher
  return signals;
}

}  // namespace

// A thread that waits for signals may call anything, unlike a signal handler. The signals are
// blocked before any other thread starts, so that all inherit this.
Interrupt::Interrupt(std::string text) : text_(std::move(text)) {
  const auto signals = watched_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  watcher_ = std::thread([this] { watch(); });
}

Interrupt::~Interrupt() {
  pthread_kill(watcher_.native_handle(), SIGUSR1);
  watcher_.join();
}

void Interrupt::watch() {
  const auto signals = watched_signals();
  bool has_hung_up = false;
  for (int signal = 0; sigwait(&signals, &signal) == 0 && signal != SIGUSR1;) {
    // The end of a parent comes as one SIGHUP for each of its threads (ChildProcess).
    if (signal == SIGHUP && has_hung_up) continue;
    has_hung_up = signal == SIGHUP;
    // The second one ends at once: saving may hang on a broken disk.
    if (source_.stop_requested()) _exit(kExitInterrupted);
    spdlog::warn("{}", text_);
    source_.request_stop();
  }
}

}  // namespace farstep
