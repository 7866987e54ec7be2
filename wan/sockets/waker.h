// Wakes a thread that waits in poll(): a descriptor beside its sockets.
//
// Any thread may call wake() at any time. The waiting thread polls fd() for POLLIN.
#pragma once

#include "wan/sockets/tcp.h"

namespace farstep::wan {

class Waker {
 public:
  // Throws InternalError if the process has no descriptor left.
  Waker();
  int fd() const { return event_.fd(); }
  // Makes fd() readable until clear().
  void wake() const;
  // Takes all wake-ups of before; there may be none.
  void clear() const;

 private:
  const Socket event_;
};

}  // namespace farstep::wan
