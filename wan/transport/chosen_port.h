// Lets Gloo listen on a port that we choose.
//
// Gloo always asks the system for any free port, and has no setting for it. This unit therefore
// stands before the C library's bind(): while a ChosenPort lives, sockets that its thread binds to
// port 0 get the chosen one. All other calls pass through.
#pragma once

namespace farstep {

class ChosenPort {
 public:
  // For this thread; 0 leaves the choice to the system. One at a time.
  explicit ChosenPort(int port);
  ~ChosenPort();
  ChosenPort(const ChosenPort&) = delete;
  ChosenPort& operator=(const ChosenPort&) = delete;
};

}  // namespace farstep
