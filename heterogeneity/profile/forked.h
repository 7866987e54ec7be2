// Work in a forked copy of this process: memory, threads and devices that it takes are given back
// when it ends, whatever happens to it.
//
// Fork before this process itself computes: threads of OpenMP and contexts of a GPU do not work in
// a copy. Belongs to the thread that it is called from.
#pragma once

#include <functional>
#include <stop_token>
#include <string>

namespace farstep {

// Hands a text over.
using Tell = std::function<void(const std::string& text)>;

enum class ForkEnd {
  kDone,
  kStopped,  // stop was requested: the copy was killed
  kKilled    // by somebody else: as a rule by the system, for want of memory
};

// Runs `work` in a copy of this process and waits for its end. Every text that `work` tells arrives
// at `receive`, here, in order. The copy is killed if stop is requested, or this process ends.
// Rethrows what `work` throws: an Error of the same kind, or else an InternalError with its text.
ForkEnd run_forked(const std::function<void(const Tell& tell)>& work, const Tell& receive,
                   const std::stop_token& stop = {});

}  // namespace farstep
