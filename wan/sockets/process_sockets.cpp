#include "wan/sockets/process_sockets.h"

#include <linux/filter.h>
#include <linux/tcp.h>  // the whole tcp_info, which <netinet/tcp.h> cuts short
#include <netinet/in.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <mutex>
#include <system_error>
#include <vector>

#include "trainer/base/error.h"

namespace farstep::wan {

namespace {

// Returns nullopt for a descriptor that is no TCP socket any more.
std::optional<tcp_info> kernel_facts(int fd) {
  tcp_info info{};
  socklen_t length = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return std::nullopt;
  return info;
}

void set_option(int fd, int level, int name, int value) {
  FARSTEP_CHECK(setsockopt(fd, level, name, &value, sizeof(value)) == 0, "setsockopt {}: {}", name,
                std::system_category().message(errno));
}

// Returns a packet filter that passes packets whose source address equals `source`: it compares the
// address word by word and jumps to the last statement, "drop", at the first difference.
std::vector<sock_filter> source_filter(const SocketAddress& source) {
  const bool is_v4 = source.family() == AF_INET;
  const uint32_t source_offset = is_v4 ? 12 : 8;  // of the source address in the IP header
  // Counted from the IP header (SKF_NET_OFF): the filter of a TCP socket begins at TCP's header.
  uint32_t words[4];
  const std::size_t count = is_v4 ? 1 : 4;
  std::memcpy(words,
              is_v4 ? static_cast<const void*>(
                          &reinterpret_cast<const sockaddr_in*>(source.get())->sin_addr)
                    : &reinterpret_cast<const sockaddr_in6*>(source.get())->sin6_addr,
              4 * count);
  std::vector<sock_filter> program;
  for (std::size_t i = 0; i < count; ++i) {
    // Two statements for each later word and the "pass" lie between here and "drop".
    const auto to_drop = static_cast<uint8_t>(2 * (count - i) - 1);
    const auto offset = static_cast<uint32_t>(SKF_NET_OFF) + source_offset;
    program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset + 4 * i)));
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohl(words[i]), 0, to_drop));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, 0xffffffff));
  program.push_back(BPF_STMT(BPF_RET | BPF_K, 0));
  return program;
}

}  // namespace

// Gloo does not give out its sockets. The kernel lists all descriptors of the process, and
// addresses distinguish sockets.
std::vector<ProcessSocket> process_sockets() {
  std::vector<ProcessSocket> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    if (const auto local = SocketAddress::local_of(fd)) {
      found.push_back({fd, *local, SocketAddress::remote_of(fd)});
    }
  }
  return found;
}

bool accept_only_from(int fd, const std::string& source_ip) {
  auto program = source_filter(SocketAddress(source_ip, 0));
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) == 0) return true;
  FARSTEP_CHECK(errno == EPERM, "SO_ATTACH_FILTER: {}", std::system_category().message(errno));
  static std::once_flag said;  // every lane of every peer finds the same
  std::call_once(said, [] {
    spdlog::warn(
        "the kernel lets only CAP_NET_ADMIN filter a port's visitors: until its peers are "
        "connected, whoever reaches the ports of the data path can disturb the run; with keys only "
        "users of this machine reach them");
  });
  return false;
}

// A peer that vanished is detected after 30 s and three probes 30 s apart: two minutes.
void keep_alive(int fd) {
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 30);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

void break_if_unanswered(int fd, double seconds) {
  constexpr double kMostSeconds = 1e6;  // the option is an int of milliseconds, and 0 means never
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT,
             static_cast<int>(std::ceil(std::min(seconds, kMostSeconds) * 1000)));
}

void send_without_delay(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
}

std::string pace_with(int fd, const std::string& congestion_control) {
  // An error is ignored on purpose: the caller learns from the result which control is in use.
  setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion_control.data(),
             static_cast<socklen_t>(congestion_control.size()));
  char name[16] = {};
  socklen_t length = sizeof(name) - 1;
  FARSTEP_CHECK(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length) == 0,
                "TCP_CONGESTION: {}", std::system_category().message(errno));
  return name;
}

void limit_pace(int fd, double bits_per_second) {
  // The largest number is the kernel's "unlimited".
  const auto bytes_per_second = std::isinf(bits_per_second)
                                    ? std::numeric_limits<uint64_t>::max()
                                    : static_cast<uint64_t>(bits_per_second / 8);
  FARSTEP_CHECK(setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &bytes_per_second,
                           sizeof(bytes_per_second)) == 0,
                "SO_MAX_PACING_RATE: {}", std::system_category().message(errno));
}

double kernel_rtt_seconds(int fd) {
  const auto facts = kernel_facts(fd);
  FARSTEP_CHECK(facts, "no TCP_INFO of descriptor {}", fd);
  return facts->tcpi_min_rtt * 1e-6;
}

SocketCounter::SocketCounter(int fd)
    : fd_(fd), local_(SocketAddress::local_of(fd)), remote_(SocketAddress::remote_of(fd)) {
  // The peer may have broken it already.
  FARSTEP_CHECK(local_, "descriptor {} is not a connection", fd);
}

void SocketCounter::limit_pace(double bits_per_second) {
  if (is_open()) wan::limit_pace(fd_, bits_per_second);
}

void SocketCounter::pace_with(const std::string& congestion_control) {
  if (is_open()) wan::pace_with(fd_, congestion_control);
}

// An error is ignored on purpose: other kernels know no such option.
void SocketCounter::hurry(bool is_hurried) {
  constexpr int kRtoMaxMilliseconds = 44;  // TCP_RTO_MAX_MS, which older headers lack
  const int milliseconds = is_hurried ? 2'000 : 120'000;  // the latter is the kernel's own
  if (!is_open()) return;
  setsockopt(fd_, IPPROTO_TCP, kRtoMaxMilliseconds, &milliseconds, sizeof(milliseconds));
}

// An error is ignored on purpose: the connection has ended by itself then.
void SocketCounter::shut_down() {
  if (is_open()) ::shutdown(fd_, SHUT_RDWR);
}

// Compares addresses, because the owner may have closed the descriptor and the kernel reused its
// number. A broken connection keeps its figures, but has no peer (tcp.cpp gives it port 0).
bool SocketCounter::is_open() const {
  const auto remote = SocketAddress::remote_of(fd_);
  return SocketAddress::local_of(fd_) == local_ &&
         (remote == remote_ || !remote || remote->port() == 0);
}

// Each repetition doubles the wait for the next one, so a connection that repeats stays dumb for
// long after its line is back.
bool SocketCounter::is_sound() const {
  constexpr auto kEstablished = 1;  // TCP_ESTABLISHED, which <linux/tcp.h> lacks
  const auto kernel = kernel_facts(fd_);
  return kernel && kernel->tcpi_state == kEstablished && kernel->tcpi_backoff == 0 &&
         SocketAddress::local_of(fd_) == local_ && SocketAddress::remote_of(fd_) == remote_;
}

SocketFacts SocketCounter::facts() {
  const auto kernel = is_open() ? kernel_facts(fd_) : std::nullopt;
  if (!kernel) return facts_;
  const double stretch =
      static_cast<double>(kernel->tcpi_rtt) / std::max<double>(1, kernel->tcpi_min_rtt);
  // The kernel counts segments in 32 bits. Their size may change, so only new ones are multiplied.
  const uint32_t new_segments = kernel->tcpi_delivered - delivered_segments_;
  delivered_segments_ = kernel->tcpi_delivered;
  const uint64_t delivered_bytes =
      facts_.line.delivered_bytes + uint64_t{new_segments} * kernel->tcpi_snd_mss;
  // Bytes sent again are no progress, so they are not counted as sent.
  facts_ = {.bytes = {.sent = kernel->tcpi_bytes_sent - kernel->tcpi_bytes_retrans,
                      .received = kernel->tcpi_bytes_received,
                      .retransmitted = kernel->tcpi_bytes_retrans},
            .rtt_seconds = kernel->tcpi_rtt * 1e-6,
            .sending_seconds = static_cast<double>(kernel->tcpi_busy_time) * 1e-6,
            .line = {.delivered_bytes = delivered_bytes,
                     .retransmitted_bytes = kernel->tcpi_bytes_retrans,
                     .least_rtt_seconds = kernel->tcpi_min_rtt * 1e-6,
                     .least_stretch = stretch,
                     .most_stretch = stretch,
                     .is_sending = kernel->tcpi_unacked > 0 || kernel->tcpi_notsent_bytes > 0},
            .is_unanswered = kernel->tcpi_unacked > 0,
            .answers = kernel->tcpi_bytes_acked};
  return facts_;
}

SocketFacts LineFromNow::facts() {
  auto facts = line_->facts();
  facts.bytes.sent -= before_.bytes.sent;
  facts.bytes.received -= before_.bytes.received;
  facts.bytes.retransmitted -= before_.bytes.retransmitted;
  facts.sending_seconds -= before_.sending_seconds;
  facts.line.delivered_bytes -= before_.line.delivered_bytes;
  facts.line.retransmitted_bytes -= before_.line.retransmitted_bytes;
  return facts;
}

}  // namespace farstep::wan
