// Sockets never block: each wait is a poll() that knows its deadline, so nothing of a site hangs in
// a system call.
#include "wan/sockets/tcp.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <system_error>

#include "trainer/base/error.h"

namespace farstep::wan {

namespace {

const sockaddr_in& as_v4(const sockaddr_storage& storage) {
  return reinterpret_cast<const sockaddr_in&>(storage);
}
const sockaddr_in6& as_v6(const sockaddr_storage& storage) {
  return reinterpret_cast<const sockaddr_in6&>(storage);
}

// Returns the number of the interface of a link-local address; 0 if this machine has none such.
uint32_t interface_number(const std::string& name) {
  if (const auto number = ::if_nametoindex(name.c_str()); number != 0) return number;
  uint32_t number = 0;
  const auto* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data(), end, number);
  return error == std::errc() && rest == end ? number : 0;
}

std::optional<SocketAddress> ask(int fd, int (*question)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage storage{};
  socklen_t length = sizeof(storage);
  if (question(fd, reinterpret_cast<sockaddr*>(&storage), &length) != 0) return std::nullopt;
  if (storage.ss_family != AF_INET && storage.ss_family != AF_INET6) return std::nullopt;
  return SocketAddress(storage);
}

[[noreturn]] void fail(int error) {
  throw TcpError(std::system_category().message(error), error);
}

Socket new_socket(int family) {
  Socket socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.fd() < 0) fail(errno);
  return socket;
}

// A signal may interrupt poll(); the wait then continues until the deadline. Errors of the socket
// end it too: the caller's next call reports them.
void wait_ready(const Socket& socket, short events, Deadline deadline) {
  pollfd entry{socket.fd(), events, 0};
  int ready = 0;
  do {
    ready = poll(&entry, 1, milliseconds_until(deadline));
  } while (ready < 0 && errno == EINTR);
  if (ready < 0) fail(errno);
  if (ready == 0) throw TcpError("timed out", ETIMEDOUT);
}

}  // namespace

// Accepts addresses only, not host names: those could mean another address at another site.
SocketAddress::SocketAddress(const std::string& ip, int port) {
  auto& v4 = reinterpret_cast<sockaddr_in&>(storage_);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(storage_);
  const auto usual = usual_ip(ip);
  if (!usual) {
    throw ConfigError(fmt::format("\"{}\" is not an IP address such as 10.0.0.5 or fd00::5", ip));
  }
  if (inet_pton(AF_INET, usual->c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(static_cast<uint16_t>(port));
    return;
  }
  const auto percent = usual->find('%');
  inet_pton(AF_INET6, usual->substr(0, percent).c_str(), &v6.sin6_addr);
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(static_cast<uint16_t>(port));
  if (percent == std::string::npos) return;
  const auto interface = usual->substr(percent + 1);
  v6.sin6_scope_id = interface_number(interface);
  if (v6.sin6_scope_id == 0) {
    throw ConfigError(
        fmt::format("{}: this machine has no interface {}: `ip address` lists those that it has",
                    ip, interface));
  }
}

SocketAddress::SocketAddress(const sockaddr_storage& storage) : storage_(storage) {
  const auto& within = as_v6(storage);
  if (family() != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&within.sin6_addr)) return;
  storage_ = {};
  auto& v4 = reinterpret_cast<sockaddr_in&>(storage_);
  v4.sin_family = AF_INET;
  v4.sin_port = within.sin6_port;
  std::memcpy(&v4.sin_addr, &within.sin6_addr.s6_addr[12], sizeof(v4.sin_addr));
}

std::optional<SocketAddress> SocketAddress::local_of(int fd) {
  return ask(fd, getsockname);
}

std::optional<SocketAddress> SocketAddress::remote_of(int fd) {
  const auto address = ask(fd, getpeername);
  if (!address || address->port() == 0) return std::nullopt;  // as getpeername() below has it
  return address;
}

std::string SocketAddress::ip() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (family() == AF_INET) {
    return inet_ntop(AF_INET, &as_v4(storage_).sin_addr, text, sizeof(text));
  }
  const auto& v6 = as_v6(storage_);
  inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
  if (!is_link_local() || v6.sin6_scope_id == 0) return text;
  char interface[IF_NAMESIZE] = "";
  if (::if_indextoname(v6.sin6_scope_id, interface) != nullptr) {
    return fmt::format("{}%{}", text, interface);
  }
  return fmt::format("{}%{}", text, v6.sin6_scope_id);
}

int SocketAddress::port() const {
  return ntohs(family() == AF_INET ? as_v4(storage_).sin_port : as_v6(storage_).sin6_port);
}

bool SocketAddress::is_loopback() const {
  return family() == AF_INET ? ntohl(as_v4(storage_).sin_addr.s_addr) >> 24 == IN_LOOPBACKNET
                             : IN6_IS_ADDR_LOOPBACK(&as_v6(storage_).sin6_addr);
}

bool SocketAddress::is_link_local() const {
  return family() == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&as_v6(storage_).sin6_addr);
}

SocketAddress SocketAddress::with_port(int port) const {
  auto changed = *this;
  const auto number = htons(static_cast<uint16_t>(port));
  if (family() == AF_INET) {
    reinterpret_cast<sockaddr_in&>(changed.storage_).sin_port = number;
  } else {
    reinterpret_cast<sockaddr_in6&>(changed.storage_).sin6_port = number;
  }
  return changed;
}

socklen_t SocketAddress::size() const {
  return family() == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

bool SocketAddress::operator==(const SocketAddress& other) const {
  return family() == other.family() && port() == other.port() && ip() == other.ip();
}

// More than some hundred years would overflow, and be over at once.
Deadline deadline_after(double seconds) {
  constexpr double kMostSeconds = 1e9;
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(
             std::chrono::duration<double>(std::min(seconds, kMostSeconds)));
}

// Rounded up: a poll() that wakes before the deadline would spin through its last millisecond.
int milliseconds_until(Deadline deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 1'000'000'000));
}

Socket::~Socket() {
  if (fd_ >= 0) close(fd_);
}

// SO_REUSEADDR: a port whose process has just ended can be used again at once.
Socket listen_tcp(const SocketAddress& address, int backlog) {
  Socket socket = new_socket(address.family());
  const int on = 1;
  setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address.family() == AF_INET6) {
    // Whatever the system's default is.
    const int off = 0;
    setsockopt(socket.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  }
  if (bind(socket.fd(), address.get(), address.size()) != 0) fail(errno);
  if (listen(socket.fd(), backlog) != 0) fail(errno);
  return socket;
}

Socket begin_connect(const SocketAddress& address, const std::string& source_ip) {
  Socket socket = new_socket(address.family());
  if (!source_ip.empty()) {
    const SocketAddress source(source_ip, 0);
    if (bind(socket.fd(), source.get(), source.size()) != 0) fail(errno);
  }
  if (connect(socket.fd(), address.get(), address.size()) != 0 && errno != EINPROGRESS) fail(errno);
  return socket;
}

void finish_connect(const Socket& socket) {
  int error = 0;
  socklen_t length = sizeof(error);
  getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) fail(error);
}

Socket connect_tcp(const SocketAddress& address, Deadline deadline, const std::string& source_ip) {
  Socket socket = begin_connect(address, source_ip);
  wait_ready(socket, POLLOUT, deadline);
  finish_connect(socket);
  return socket;
}

void send_line(const Socket& socket, const std::string& line, Deadline deadline) {
  FARSTEP_CHECK(line.size() < kLongestLine, "a line of {} bytes", line.size());
  wait_ready(socket, POLLOUT, deadline);
  const std::string text = line + "\n";
  // A line always fits into an empty send buffer.
  const auto sent = send(socket.fd(), text.data(), text.size(), MSG_NOSIGNAL);
  if (sent < 0) fail(errno);
  if (static_cast<std::size_t>(sent) != text.size()) throw TcpError("the send buffer is full");
}

// Limits the length, because a stranger may send anything.
std::string receive_line(const Socket& socket, Deadline deadline) {
  std::string line;
  while (line.empty() || line.back() != '\n') {
    wait_ready(socket, POLLIN, deadline);
    char piece[kLongestLine];
    const auto count = recv(socket.fd(), piece, sizeof(piece), 0);
    if (count < 0) fail(errno);
    if (count == 0) throw TcpError("the connection was closed");
    line.append(piece, static_cast<std::size_t>(count));
    if (line.size() > kLongestLine) throw TcpError("the answer is too long");
  }
  line.pop_back();
  return line;
}

}  // namespace farstep::wan

// Gloo asks for the address of the other end as soon as a connection exists. If that is gone
// already, the call fails, and Gloo throws in a thread of its own, where nobody can catch it. So
// this function replaces the C library's. The other end of a broken connection has the address
// 0.0.0.0:0 then, and Gloo reports the loss of the peer when it reads or writes. It stands in this
// file because every program links it, before a sanitizer's own.
extern "C" int getpeername(int fd, sockaddr* address, socklen_t* length) noexcept {
  const auto result = static_cast<int>(::syscall(SYS_getpeername, fd, address, length));
  if (result == 0 || errno != ENOTCONN) return result;
  sockaddr_in nobody{};
  nobody.sin_family = AF_INET;
  std::memcpy(address, &nobody, std::min<std::size_t>(*length, sizeof(nobody)));
  *length = sizeof(nobody);
  return 0;
}
