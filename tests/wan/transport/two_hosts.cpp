#include "tests/wan/transport/two_hosts.h"

#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "trainer/base/error.h"

namespace farstep {

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

bool shell(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

// The process of one host; never returns.
[[noreturn]] void live(int rank, int fd, const std::function<std::string(int, Store&)>& host) {
  PacketStore store(fd);
  std::string report;
  try {
    FARSTEP_CHECK(unshare(CLONE_NEWNET) == 0, "no network namespace");
    store.put(fmt::format("host {} lives", rank), "");
    store.get("cable");
    for (const auto& command :
         {std::string("ip link set lo up"), std::string("ip link set cable up"),
          fmt::format("ip addr add 10.77.0.{}/24 dev cable", rank + 1),
          fmt::format("ip addr add fd77::{}/64 dev cable nodad", rank + 1)}) {
      FARSTEP_CHECK(shell(command), "{} failed", command);
    }
    report = host(rank, store);
  } catch (const std::exception& error) {
    report = error.what();
  }
  // The cable goes with the first of its two ends.
  store.put(fmt::format("host {} is done", rank), "");
  store.get(fmt::format("host {} is done", 1 - rank));
  store.report(report);
  _exit(0);
}

}  // namespace

std::string two_hosts_obstacle() {
  if (geteuid() != 0) return "network namespaces need root";
  if (!shell("ip -V")) return "there is no ip program (iproute2)";
  return shell("unshare --net ip link add name a type veth peer name b")
             ? ""
             : "network namespaces with veth interfaces cannot be made here";
}

std::string run_two_hosts(const std::function<std::string(int, Store&)>& host) {
  std::array<std::array<int, 2>, 2> sockets;
  std::array<pid_t, 2> children;
  for (int rank = 0; rank < 2; ++rank) {
    FARSTEP_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets[rank].data()) == 0,
                  "no socket pair");
    children[rank] = fork();
    FARSTEP_CHECK(children[rank] >= 0, "no process");
    if (children[rank] == 0) live(rank, sockets[rank][1], host);
    close(sockets[rank][1]);
  }
  MemoryStore store(20);
  std::array<std::string, 2> reports;
  std::array<std::thread, 2> servers;
  for (int rank = 0; rank < 2; ++rank) {
    servers[rank] = std::thread([&, rank] { reports[rank] = serve(sockets[rank][0], store); });
  }
  store.get("host 0 lives");
  store.get("host 1 lives");
  // A host without a cable says so itself.
  shell(fmt::format("ip link add name cable netns {} type veth peer name cable netns {}",
                    children[0], children[1]));
  store.put("cable", "");
  std::string text;
  for (int rank = 0; rank < 2; ++rank) {
    servers[rank].join();
    waitpid(children[rank], nullptr, 0);
    close(sockets[rank][0]);
    text += fmt::format("{}: {}\n", rank, reports[rank]);
  }
  return text;
}

}  // namespace farstep
