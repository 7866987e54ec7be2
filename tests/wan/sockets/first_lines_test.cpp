#include "wan/sockets/first_lines.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <list>

#include "tests/support/catch.h"

namespace farstep::wan {
namespace {

constexpr double kPatienceSeconds = 30;

struct Host {
  explicit Host(double line_seconds) : visitors(line_seconds) {}

  // Waits for visitors and lines as an owner does, until `count` lines have come in all.
  void hear(std::size_t count) {
    const auto end = deadline_after(kPatienceSeconds);
    while (lines.size() < count && milliseconds_until(end) > 0) turn(end);
  }
  // One wait, which ends when something comes or a visitor is late.
  void turn(Deadline end) {
    std::vector<pollfd> entries{{listener.fd(), POLLIN, 0}};
    const auto late = visitors.begin_wait(entries);
    poll(entries.data(), entries.size(), milliseconds_until(late ? std::min(*late, end) : end));
    visitors.hear(std::span(entries).subspan(1), [&](Socket& visitor, const std::string& line) {
      lines.push_back(line);
      if (line == "keep") kept = std::move(visitor);
      if (line == "fail") throw TcpError("it has gone");
    });
    if (entries[0].revents != 0) CHECK(visitors.admit(listener) == 0);
    entries.clear();
    visitors.begin_wait(entries);
    num_visitors = entries.size();
  }
  Socket visit() const {
    return connect_tcp(*SocketAddress::local_of(listener.fd()), deadline_after(kPatienceSeconds));
  }

  Socket listener = listen_tcp(SocketAddress("127.0.0.1", 0), 128);
  FirstLines visitors;
  std::vector<std::string> lines;
  Socket kept;
  std::size_t num_visitors = 0;  // after the last turn
};

void say(const Socket& socket, const std::string& line) {
  send_line(socket, line, deadline_after(kPatienceSeconds));
}

bool is_closed(const Socket& socket) {
  try {
    receive_line(socket, deadline_after(kPatienceSeconds));
    return false;
  } catch (const TcpError& error) {
    return std::string(error.what()) != "timed out";
  }
}

TEST_CASE("a visitor is heard beside silent ones, and may be kept") {
  Host host(kPatienceSeconds);
  const auto silent = host.visit();
  const auto kept = host.visit();
  const auto dropped = host.visit();
  say(kept, "keep");
  say(dropped, "something else");
  host.hear(2);
  CHECK(host.lines.size() == 2);
  CHECK(is_closed(dropped));
  say(host.kept, "answer");
  CHECK(receive_line(kept, deadline_after(kPatienceSeconds)) == "answer");
  say(silent, "now");
  host.hear(3);
  CHECK(host.lines.back() == "now");
}

TEST_CASE("what goes wrong with one visitor ends its connection alone") {
  Host host(kPatienceSeconds);
  const auto failing = host.visit();
  const auto endless = host.visit();
  { const auto gone = host.visit(); }
  const std::string text(2 * kLongestLine, 'x');
  REQUIRE(send(endless.fd(), text.data(), text.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(text.size()));
  say(failing, "fail");
  host.hear(1);
  const auto next = host.visit();
  say(next, "fine");
  host.hear(2);
  CHECK(host.lines == std::vector<std::string>{"fail", "fine"});
  CHECK(is_closed(failing));
  CHECK(is_closed(endless));
}

TEST_CASE("a silent visitor goes after its time") {
  Host host(0.05);
  const auto silent = host.visit();
  const auto end = deadline_after(kPatienceSeconds);
  do {
    host.turn(end);
  } while (host.num_visitors == 0 && milliseconds_until(end) > 0);
  while (host.num_visitors > 0 && milliseconds_until(end) > 0) host.turn(end);
  CHECK(is_closed(silent));
  CHECK(milliseconds_until(end) > 0);
}

TEST_CASE("of too many silent visitors the oldest goes") {
  Host host(kPatienceSeconds);
  std::list<Socket> silent;
  for (std::size_t i = 0; i < FirstLines::kMostVisitors; ++i) silent.push_back(host.visit());
  const auto last = host.visit();
  say(last, "here");
  host.hear(1);
  CHECK(host.lines == std::vector<std::string>{"here"});
  CHECK(is_closed(silent.front()));
  say(silent.back(), "still here");
  host.hear(2);
  CHECK(host.lines.back() == "still here");
}

TEST_CASE("a process that can take no connection is told why") {
  FirstLines visitors(1);
  CHECK(visitors.admit(Socket()) == EBADF);
  std::vector<pollfd> entries;
  CHECK_FALSE(visitors.begin_wait(entries));
  CHECK(entries.empty());
}

}  // namespace
}  // namespace farstep::wan
