#include "tests/wan/transport/hosts.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <mutex>
#include <thread>

#include "tests/support/memory_store.h"
#include "trainer/base/error.h"

namespace farstep::wan {

namespace {

constexpr std::size_t kMostBytes = 1 << 16;

std::string receive_packet(int fd) {
  std::string packet(kMostBytes, '\0');
  const auto count = recv(fd, packet.data(), packet.size(), 0);
  packet.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return packet;
}

// A host's end of serve(): a packet is a verb, the key, and for a put a zero byte and the value.
class PacketStore : public Store {
 public:
  explicit PacketStore(int fd) : fd_(fd) {}
  void put(const std::string& key, const std::string& value) override {
    send_packet("p" + key + '\0' + value);
  }
  std::string get(const std::string& key) override {
    const std::lock_guard lock(mutex_);
    send_packet("g" + key);
    const auto answer = receive_packet(fd_);
    if (answer.empty()) throw PeerError("", "nobody put " + key);
    return answer.substr(1);
  }
  void report(const std::string& text) { send_packet("r" + text); }

 private:
  void send_packet(const std::string& packet) {
    FARSTEP_CHECK(send(fd_, packet.data(), packet.size(), MSG_NOSIGNAL) > 0, "the store is gone");
  }
  const int fd_;
  std::mutex mutex_;  // one question at a time
};

// Serves `store` to a host until it has reported or died; returns the report.
std::string serve(int fd, Store& store) {
  while (true) {
    const auto packet = receive_packet(fd);
    if (packet.empty()) return "died";
    const auto rest = packet.substr(1);
    if (packet[0] == 'r') return rest;
    if (packet[0] == 'p') {
      const auto end = rest.find('\0');
      store.put(rest.substr(0, end), rest.substr(end + 1));
      continue;
    }
    try {
      const auto answer = "v" + store.get(rest);
      send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
    } catch (const PeerError&) {
      shutdown(fd, SHUT_WR);  // the host's get() throws
    }
  }
}

// The process of one host.
[[noreturn]] void live(int rank, int fd, const Host& host) {
  PacketStore store(fd);
  std::string report;
  try {
    report = host(rank, store);
  } catch (const std::exception& error) {
    report = error.what();
  }
  store.report(report);
  _exit(0);
}

}  // namespace

std::vector<std::string> run_hosts(
    int n, const Host& host, double store_seconds,
    const std::function<void(Store&, const std::vector<pid_t>&)>& meanwhile) {
  std::vector<int> sockets;
  std::vector<pid_t> pids;
  for (int rank = 0; rank < n; ++rank) {
    std::array<int, 2> ends;
    FARSTEP_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0,
                  "no socket pair");
    pids.push_back(fork());
    FARSTEP_CHECK(pids.back() >= 0, "no process");
    if (pids.back() == 0) live(rank, ends[1], host);
    close(ends[1]);
    sockets.push_back(ends[0]);
  }
  MemoryStore store(store_seconds);
  std::vector<std::string> reports(static_cast<std::size_t>(n));
  std::vector<std::thread> servers;
  for (int rank = 0; rank < n; ++rank) {
    servers.emplace_back([&, rank] { reports[rank] = serve(sockets[rank], store); });
  }
  if (meanwhile) meanwhile(store, pids);
  for (int rank = 0; rank < n; ++rank) {
    servers[rank].join();
    waitpid(pids[rank], nullptr, 0);
    close(sockets[rank]);
  }
  return reports;
}

}  // namespace farstep::wan
