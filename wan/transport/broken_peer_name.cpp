// Keeps Gloo from ending the process when a connection breaks while it is made.
//
// Gloo asks for the address of the other end as soon as a connection exists. If that is gone
// already, the call fails, and Gloo throws in a thread of its own, where nobody can catch it. This
// unit therefore replaces the C library's getpeername(). The other end of a broken connection has
// the address 0.0.0.0:0 then, and Gloo reports the loss of the peer when it reads or writes.
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

extern "C" int getpeername(int fd, sockaddr* address, socklen_t* length) noexcept {
  // The system call itself: the C library's function is the one that this one replaces.
  const auto result = static_cast<int>(::syscall(SYS_getpeername, fd, address, length));
  if (result == 0 || errno != ENOTCONN) return result;
  sockaddr_in nobody{};
  nobody.sin_family = AF_INET;
  std::memcpy(address, &nobody, std::min<std::size_t>(*length, sizeof(nobody)));
  *length = sizeof(nobody);
  return 0;
}
