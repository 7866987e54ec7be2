// Makes Gloo listen on a given port.
//
// Gloo asks the system for any free port and has no setting for another. This unit therefore
// replaces the C library's bind(). While a ChosenPort exists, every socket that its thread binds to
// port 0 gets the chosen port. All other calls pass through unchanged.
#pragma once

namespace farstep::wan {

class ChosenPort {
 public:
  // Applies to the calling thread only; 0 leaves the choice to the system. A thread has at most one
  // ChosenPort at a time.
  explicit ChosenPort(int port);
  ~ChosenPort();
  ChosenPort(const ChosenPort&) = delete;
  ChosenPort& operator=(const ChosenPort&) = delete;
};

}  // namespace farstep::wan
