#include "trainer/launch/interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <utility>

#include "trainer/base/error.h"

namespace farstep {

namespace {

sigset_t watched_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
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
  for (int signal = 0; sigwait(&signals, &signal) == 0 && signal != SIGUSR1;) {
    // The second one ends at once: saving may hang on a broken disk.
    if (source_.stop_requested()) _exit(kExitInterrupted);
    spdlog::warn("{}", text_);
    source_.request_stop();
  }
}

}  // namespace farstep
