#include "wan/transport/gloo/chosen_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

namespace farstep::wan {

namespace {

// By thread, so that other threads of the process bind as usual meanwhile.
thread_local int chosen_port = 0;

int bind_to_chosen_port(int fd, const sockaddr* address, socklen_t length) {
  // The caller's address is const.
  sockaddr_storage changed{};
  if (chosen_port != 0 && length <= sizeof(changed)) {
    std::memcpy(&changed, address, length);
    auto* ip4 = reinterpret_cast<sockaddr_in*>(&changed);
    auto* ip6 = reinterpret_cast<sockaddr_in6*>(&changed);
    const auto port = htons(static_cast<uint16_t>(chosen_port));
    // Only a free choice is replaced: a socket that asks for a port gets that one.
    if (changed.ss_family == AF_INET && ip4->sin_port == 0) ip4->sin_port = port;
    if (changed.ss_family == AF_INET6 && ip6->sin6_port == 0) ip6->sin6_port = port;
    address = reinterpret_cast<const sockaddr*>(&changed);
  }
  // The system call itself: bind() of the C library is the function that this one replaces.
  return static_cast<int>(::syscall(SYS_bind, fd, address, length));
}

}  // namespace

ChosenPort::ChosenPort(int port) {
  chosen_port = port;
}

ChosenPort::~ChosenPort() {
  chosen_port = 0;
}

}  // namespace farstep::wan

extern "C" int bind(int fd, const sockaddr* address, socklen_t length) noexcept {
  return farstep::wan::bind_to_chosen_port(fd, address, length);
}
