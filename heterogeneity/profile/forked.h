// Runs work in a forked copy of this process. Its memory, threads and devices are freed when it
// ends, in whatever way.
//
// Fork before this process itself computes: OpenMP's threads and a GPU's contexts do not work in a
// copy. One thread uses it.
#pragma once

#include <functional>
#include <stop_token>
#include <string>

namespace farstep::heterogeneity {

// Sends a text to the original process.
using Tell = std::function<void(const std::string& text)>;

enum class ForkEnd {
  kDone,
  kStopped,  // a stop was requested and the copy was killed
  kKilled    // killed by another process, usually by the system for lack of memory
};

// Runs `work` in a copy of this process and waits for its end. Passes every text that `work` sends
// to `receive`, in order. Kills the copy if a stop is requested; it also dies with this process.
// Rethrows an exception of `work`: an Error of the same kind, or an InternalError with its text.
ForkEnd run_forked(const std::function<void(const Tell& tell)>& work, const Tell& receive,
                   const std::stop_token& stop = {});

}  // namespace farstep::heterogeneity
