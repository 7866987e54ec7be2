#include "tests/wan/transport/cuttable_link.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>

namespace farstep::wan {

namespace {

constexpr double kConnectSeconds = 5;
constexpr int64_t kTurnsPerSecond = 100;  // of a slow link
constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

bool wait_to_write(const Socket& to) {
  pollfd item{to.fd(), POLLOUT, 0};
  return ::poll(&item, 1, static_cast<int>(1e3 * kConnectSeconds)) > 0;
}

// Hands on what has come, at most so many bytes. Returns how many; 0 at the connection's end.
std::size_t forward(const Socket& from, const Socket& to, std::size_t most) {
  std::array<char, 1 << 16> buffer;
  const auto size = ::recv(from.fd(), buffer.data(), std::min(most, buffer.size()), MSG_DONTWAIT);
  for (ssize_t sent = 0; sent < size;) {
    if (!wait_to_write(to)) return 0;
    const auto left = static_cast<std::size_t>(size - sent);
    const auto count = ::send(to.fd(), buffer.data() + sent, left, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0) return 0;
    sent += count;
  }
  return static_cast<std::size_t>(std::max<ssize_t>(size, 0));
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

void CuttableLink::slow_down(int64_t bytes_per_second) {
  bytes_per_second_ = bytes_per_second;
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

// A slow link forwards the bytes of a turn, and then waits for as long as these take.
void CuttableLink::run() {
  using Clock = std::chrono::steady_clock;
  auto next_turn = Clock::now();
  while (!is_stopping_) {
    const bool is_held = is_held_;
    const int64_t rate = bytes_per_second_;
    const auto wait_seconds = std::chrono::duration<double>(next_turn - Clock::now()).count();
    const bool waits = rate > 0 && wait_seconds > 0;
    std::vector<pollfd> items{{waker_.fd(), POLLIN, 0}};
    const auto add = [&](const Socket& socket, bool is_taken) {
      items.push_back({is_taken ? socket.fd() : -1, POLLIN, 0});
    };
    add(listener_, !is_held);
    for (const auto& pair : pairs_) {
      add(pair.near, !is_held && !waits);
      add(pair.far, !is_held);
    }
    ::poll(items.data(), items.size(), waits ? static_cast<int>(1e3 * wait_seconds) + 1 : -1);
    waker_.clear();
    const auto most = rate > 0 ? std::max<int64_t>(1, rate / kTurnsPerSecond) : kUnlimited;
    int64_t bytes = 0;  // of this turn
    const auto forward_near = [&](const Pair& pair) {
      const auto count = forward(pair.near, pair.far, static_cast<std::size_t>(most));
      bytes += static_cast<int64_t>(count);
      return count > 0;
    };
    auto item = items.begin() + 2;
    for (auto pair = pairs_.begin(); pair != pairs_.end(); item += 2) {
      const bool is_lost =
          (item[0].revents != 0 && !forward_near(*pair)) ||
          (item[1].revents != 0 && forward(pair->far, pair->near, kUnlimited) == 0);
      pair = is_lost ? pairs_.erase(pair) : std::next(pair);
    }
    forwarded_bytes_ += bytes;
    if (rate > 0 && bytes > 0) {
      const std::chrono::duration<double> turn(static_cast<double>(bytes) /
                                               static_cast<double>(rate));
      next_turn = Clock::now() + std::chrono::duration_cast<Clock::duration>(turn);
    }
    if (is_cut_.exchange(false)) pairs_.clear();
    if (items[1].revents != 0) take();
  }
}

}  // namespace farstep::wan
