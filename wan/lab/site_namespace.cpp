// A site of the lab is a network namespace whose only way out is a TUN interface: a file from which
// the lab reads IP packets and into which it writes them.
#include "wan/lab/site_namespace.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <fstream>

#include "trainer/base/error.h"

namespace farstep::wan {

namespace {

// The queue of packets that the lab has not read: room for the burst of a TCP window.
constexpr int kInterfaceQueuePackets = 10'000;

void require(bool is_done, const char* what) {
  if (is_done) return;
  throw ConfigError(fmt::format(
      "wan_lab: {}: {}; it needs root with CAP_NET_ADMIN and CAP_SYS_ADMIN, and /dev/net/tun", what,
      std::strerror(errno)));
}

// Enters a new network namespace, and returns at the end of the scope. A thread is in one namespace
// at a time, and interfaces must be made inside.
class Excursion {
 public:
  Excursion() : home_(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC)) {
    require(home_ >= 0, "/proc/self/ns/net");
    // The failure is reported after the file is closed: the destructor of a half-made object does
    // not run.
    const bool is_away = ::unshare(CLONE_NEWNET) == 0;
    if (!is_away) ::close(home_);
    require(is_away, "cannot make a network namespace");
  }
  ~Excursion() {
    if (::setns(home_, CLONE_NEWNET) != 0) std::terminate();  // all after it would go astray
    ::close(home_);
  }
  Excursion(const Excursion&) = delete;
  Excursion& operator=(const Excursion&) = delete;

 private:
  const int home_;
};

// Makes an interface in the thread's namespace.
class Interface {
 public:
  explicit Interface(const char* name) : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    require(socket_ >= 0, "cannot open a socket");
    std::strncpy(request_.ifr_name, name, IFNAMSIZ - 1);
  }
  ~Interface() { ::close(socket_); }
  Interface(const Interface&) = delete;
  Interface& operator=(const Interface&) = delete;

  void set_mtu(int bytes) {
    request_.ifr_mtu = bytes;
    ask(SIOCSIFMTU, "cannot set the interface's MTU");
  }
  void set_queue(int packets) {
    request_.ifr_qlen = packets;
    ask(SIOCSIFTXQLEN, "cannot set the interface's queue");
  }
  void set_address(uint32_t address, uint32_t mask) {
    put_address(address);
    ask(SIOCSIFADDR, "cannot set the interface's address");
    put_address(mask);
    ask(SIOCSIFNETMASK, "cannot set the interface's network");
  }
  void bring_up() {
    // The flags are read first, because they are set as a whole.
    ask(SIOCGIFFLAGS, "cannot look at the interface");
    request_.ifr_flags = static_cast<short>(request_.ifr_flags | IFF_UP);
    ask(SIOCSIFFLAGS, "cannot bring the interface up");
  }

 private:
  void put_address(uint32_t address) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = htonl(address);
    std::memcpy(&request_.ifr_addr, &in, sizeof(in));
  }
  void ask(unsigned long what, const char* failure) {
    require(::ioctl(socket_, what, &request_) == 0, failure);
  }

  const int socket_;
  ifreq request_{};
};

int open_tun() {
  const int tun = ::open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
  require(tun >= 0, "cannot open /dev/net/tun");
  ifreq request{};
  std::strncpy(request.ifr_name, kSiteInterface, IFNAMSIZ - 1);
  // Plain IP packets, without a header of the driver.
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  if (::ioctl(tun, TUNSETIFF, &request) == 0) return tun;
  const int error = errno;
  ::close(tun);
  errno = error;
  require(false, "cannot make a TUN interface");
  return -1;
}

// Disables IPv6 on the interface, which the kernel would use by default. Without IPv6 the file does
// not exist.
void silence_ipv6() {
  std::ofstream(fmt::format("/proc/sys/net/ipv6/conf/{}/disable_ipv6", kSiteInterface)) << 1;
}

[[noreturn]] void hold(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(0);  // it died before the line above
  ::setsid();                             // Ctrl-C is for the lab
  ::close_range(0, ~0U, 0);               // the interfaces of other sites, and the terminal
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  while (true) ::pause();
}

}  // namespace

SiteNamespace::SiteNamespace(uint32_t address, int64_t mtu_bytes) {
  const Excursion excursion;
  Interface("lo").bring_up();
  tun_ = open_tun();
  silence_ipv6();
  Interface wan(kSiteInterface);
  wan.set_mtu(static_cast<int>(mtu_bytes));
  wan.set_queue(kInterfaceQueuePackets);
  wan.set_address(address, 0xffffff00);
  wan.bring_up();
  // A namespace without a process vanishes, so one process waits in it. It also gives commands a
  // way in.
  const pid_t parent = ::getpid();
  holder_ = ::fork();
  if (holder_ == 0) hold(parent);
  require(holder_ > 0, "cannot start the process that holds a namespace");
}

SiteNamespace::~SiteNamespace() {
  ::close(tun_);
  ::kill(holder_, SIGKILL);
  ::waitpid(holder_, nullptr, 0);
}

std::size_t SiteNamespace::read_packet(std::span<std::byte> room) {
  const auto bytes = ::read(tun_, room.data(), room.size());
  if (bytes >= 0) return static_cast<std::size_t>(bytes);
  FARSTEP_CHECK(errno == EAGAIN || errno == EINTR, "reading from {}: {}", kSiteInterface,
                std::strerror(errno));
  return 0;
}

void SiteNamespace::write_packet(std::span<const std::byte> packet) {
  const auto written = ::write(tun_, packet.data(), packet.size());
  // A program in the site may have taken the interface down.
  FARSTEP_CHECK(written == static_cast<ssize_t>(packet.size()) || errno == EIO, "writing to {}: {}",
                kSiteInterface, std::strerror(errno));
}

}  // namespace farstep::wan
