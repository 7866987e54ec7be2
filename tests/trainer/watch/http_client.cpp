#include "tests/trainer/watch/http_client.h"

#include <fmt/format.h>
#include <poll.h>

namespace farstep {

namespace {

// After a damaged file the page pauses for twenty times what reading took: long on a busy machine.
constexpr double kSeconds = 60;

void wait_for(const wan::Socket& socket, short events, wan::Deadline deadline) {
  pollfd entry{.fd = socket.fd(), .events = events, .revents = 0};
  if (::poll(&entry, 1, wan::milliseconds_until(deadline)) == 0)
    throw wan::TcpError("no answer in time");
}

}  // namespace

wan::Socket send_to(const wan::SocketAddress& server, const std::string& text) {
  const auto deadline = wan::deadline_after(kSeconds);
  auto socket = connect_tcp(server, deadline);
  for (std::size_t sent = 0; sent < text.size();) {
    wait_for(socket, POLLOUT, deadline);
    const auto count = ::send(socket.fd(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count < 0) break;  // the server has closed the connection, and said why
    sent += static_cast<std::size_t>(count);
  }
  return socket;
}

std::string receive_from(const wan::Socket& socket, const std::string& enough) {
  const auto deadline = wan::deadline_after(kSeconds);
  std::string answer;
  char buffer[4096];
  while (answer.find(enough) == answer.npos) {
    wait_for(socket, POLLIN, deadline);
    const auto count = ::recv(socket.fd(), buffer, sizeof buffer, 0);
    if (count <= 0) break;
    answer.append(buffer, static_cast<std::size_t>(count));
  }
  return answer;
}

std::string ask(const wan::SocketAddress& server, const std::string& text,
                const std::string& enough) {
  return receive_from(send_to(server, text), enough);
}

std::string get(const wan::SocketAddress& server, const std::string& path,
                const std::string& headers) {
  return ask(server, fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\n{}\r\n", path, headers));
}

std::string body_of(const std::string& answer) {
  const auto end = answer.find("\r\n\r\n");
  return end == answer.npos ? "" : answer.substr(end + 4);
}

}  // namespace farstep
