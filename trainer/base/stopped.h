// How long work ends in its middle because a stop was requested.
//
// The token is passed down by value or reference to where the work is done, and Stopped comes back
// up. Whoever catches it knows which state is whole.
#pragma once

#include <stop_token>

namespace farstep {

// Not an error: nothing failed, so it is no std::exception.
struct Stopped {};

// Throws Stopped if `stop` was requested. Takes nanoseconds.
inline void throw_if_stopped(const std::stop_token& stop) {
  if (stop.stop_requested()) throw Stopped();
}

}  // namespace farstep
