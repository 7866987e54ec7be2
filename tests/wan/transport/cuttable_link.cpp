#include "tests/wan/transport/cuttable_link.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

namespace farstep::wan {

namespace {

constexpr double kConnectSeconds = 5;

bool wait_to_write(const Socket& to) {
  pollfd item{to.fd(), POLLOUT, 0};
  return ::poll(&item, 1, static_cast<int>(1e3 * kConnectSeconds)) > 0;
}

// Hands on what has come; false if the connection is at its end.
bool forward(const Socket& from, const Socket& to) {
  std::array<char, 1 << 16> buffer;
  const auto size = ::recv(from.fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  for (ssize_t sent = 0; sent < size;) {
    if (!wait_to_write(to)) return false;
    const auto left = static_cast<std::size_t>(size - sent);
    const auto count = ::send(to.fd(), buffer.data() + sent, left, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0) return false;
    sent += count;
  }
  return size > 0;
}

}  // namespace

CuttableLink::CuttableLink(int port)
    : target_("127.0.0.1", port),
      listener_(listen_tcp(SocketAddress("127.0.0.1", 0))),
      thread_([this] { run(); }) {}

CuttableLink::~CuttableLink() {
  is_stopping_ = true;
  waker_.wake();
  thread_.join();
}

void CuttableLink::cut() {
  is_cut_ = true;
  waker_.wake();
}

void CuttableLink::hold(bool is_held) {
  is_held_ = is_held;
  waker_.wake();
}

void CuttableLink::take() {
  Socket near(::accept(listener_.fd(), nullptr, nullptr));
  if (near.fd() < 0) return;
  try {
    pairs_.push_back({std::move(near), connect_tcp(target_, deadline_after(kConnectSeconds))});
  } catch (const TcpError&) {
    // The visitor sees its connection close.
  }
}

void CuttableLink::run() {
  while (!is_stopping_) {
    const bool is_held = is_held_;
    std::vector<pollfd> items{{waker_.fd(), POLLIN, 0}};
    const auto add = [&](const Socket& socket) {
      items.push_back({is_held ? -1 : socket.fd(), POLLIN, 0});
    };
    add(listener_);
    for (const auto& pair : pairs_) {
      add(pair.near);
      add(pair.far);
    }
    ::poll(items.data(), items.size(), -1);
    waker_.clear();
    auto item = items.begin() + 2;
    for (auto pair = pairs_.begin(); pair != pairs_.end(); item += 2) {
      const bool is_lost = (item[0].revents != 0 && !forward(pair->near, pair->far)) ||
                           (item[1].revents != 0 && !forward(pair->far, pair->near));
      pair = is_lost ? pairs_.erase(pair) : std::next(pair);
    }
    if (is_cut_.exchange(false)) pairs_.clear();
    if (items[1].revents != 0) take();
  }
}

}  // namespace farstep::wan
