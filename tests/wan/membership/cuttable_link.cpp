#include "tests/wan/membership/cuttable_link.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

namespace farstep {

namespace {

constexpr double kConnectSeconds = 5;

// Hands on what has come; false if the connection is at its end.
bool forward(const Socket& from, const Socket& to) {
  std::array<char, 1 << 16> buffer;
  const auto size = ::recv(from.fd(), buffer.data(), buffer.size(), 0);
  if (size <= 0) return false;
  // Control messages are far smaller than the socket's buffer: one send takes them whole.
  return ::send(to.fd(), buffer.data(), static_cast<std::size_t>(size), MSG_NOSIGNAL) == size;
}

}  // namespace

CuttableLink::CuttableLink(int port)
    : target_("127.0.0.1", port),
      listener_(listen_tcp(SocketAddress("127.0.0.1", 0))),
      wake_(::eventfd(0, EFD_NONBLOCK)),
      thread_([this] { run(); }) {}

CuttableLink::~CuttableLink() {
  is_stopping_ = true;
  cut();
  thread_.join();
}

std::string CuttableLink::endpoint() const {
  return "tcp://" + SocketAddress::local_of(listener_.fd())->text();
}

void CuttableLink::cut() {
  ::eventfd_write(wake_.fd(), 1);
}

void CuttableLink::run() {
  Socket site;
  Socket coordinator;
  while (!is_stopping_) {
    std::array<pollfd, 4> items{{{wake_.fd(), POLLIN, 0},
                                 {listener_.fd(), POLLIN, 0},
                                 {site.fd(), POLLIN, 0},
                                 {coordinator.fd(), POLLIN, 0}}};
    ::poll(items.data(), items.size(), -1);
    eventfd_t ignored = 0;
    const bool is_cut = ::eventfd_read(wake_.fd(), &ignored) == 0;
    const bool is_lost = (items[2].revents != 0 && !forward(site, coordinator)) ||
                         (items[3].revents != 0 && !forward(coordinator, site));
    if (is_cut || is_lost) {
      site = Socket();
      coordinator = Socket();
    } else if (items[1].revents != 0) {
      site = Socket(::accept(listener_.fd(), nullptr, nullptr));
      coordinator = connect_tcp(target_, deadline_after(kConnectSeconds));
    }
  }
}

}  // namespace farstep
