#include "wan/sockets/waker.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <system_error>

#include "trainer/base/error.h"

namespace farstep::wan {

// poll() ignores a descriptor that is none. So a thread without one would wait for ever.
Waker::Waker() : event_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  FARSTEP_CHECK(event_.fd() >= 0, "no event descriptor: {}; raise the limit of open files",
                std::system_category().message(errno));
}

// Fails only if the counter is full, and then a wake-up is pending.
void Waker::wake() const {
  ::eventfd_write(event_.fd(), 1);
}

// Fails if nobody called wake(), which is harmless.
void Waker::clear() const {
  eventfd_t ignored = 0;
  ::eventfd_read(event_.fd(), &ignored);
}

}  // namespace farstep::wan
