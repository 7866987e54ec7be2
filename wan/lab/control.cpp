#include "wan/lab/control.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "trainer/base/error.h"
#include "trainer/config/strict_json.h"

namespace farstep::wan {

namespace {

constexpr std::array<std::string_view, 4> kCommands{"set", "cut", "heal", "counters"};
// Requests are one line of a few numbers.
constexpr std::size_t kMostRequestBytes = 4096;
// Messages with borders, so that a request needs no framing.
constexpr int kSocketType = SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC;

sockaddr_un address_of(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const auto text = path.string();
  if (text.size() >= sizeof(address.sun_path)) {
    throw ConfigError(
        fmt::format("{}: too long for a unix socket ({} bytes at most): choose a "
                    "folder with a shorter path",
                    text, sizeof(address.sun_path) - 1));
  }
  std::memcpy(address.sun_path, text.c_str(), text.size());
  return address;
}

// Distinguishes a running lab from a socket file that a killed one left.
bool somebody_listens(const sockaddr_un& address) {
  const int probe = ::socket(AF_UNIX, kSocketType, 0);
  const bool is_answered =
      ::connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  ::close(probe);
  return is_answered;
}

void watch(int events, int descriptor) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = descriptor}};
  FARSTEP_CHECK(::epoll_ctl(events, EPOLL_CTL_ADD, descriptor, &event) == 0, "epoll_ctl: {}",
                std::strerror(errno));
}

Json carry_out(Router& router, const ControlRequest& request) {
  if (request.command == ControlCommand::kCounters) return to_json(router.counters());
  const auto sites = static_cast<int64_t>(router.num_sites());
  if (!request.site || *request.site > sites) {
    throw ConfigError(fmt::format("site: must be from 1 to {}", sites));
  }
  const auto site = static_cast<std::size_t>(*request.site - 1);
  // From the present shape, so that one option changes one figure.
  auto shape = router.shape(site);
  if (request.command == ControlCommand::kSet) {
    shape.rate_bits_per_second = request.rate_bits_per_second.value_or(shape.rate_bits_per_second);
    shape.delay_seconds = request.delay_seconds.value_or(shape.delay_seconds);
    shape.loss = request.loss.value_or(shape.loss);
    shape.queue_seconds = request.queue_seconds.value_or(shape.queue_seconds);
  } else {
    shape.is_cut = request.command == ControlCommand::kCut;
  }
  router.set_shape(site, shape);
  return to_json(shape);
}

}  // namespace

std::span<const std::string_view> enum_names(ControlCommand) {
  return kCommands;
}

std::string answer_request(Router& router, const std::string& request) {
  try {
    // Any process of this machine may write to the socket.
    return carry_out(router, read_untrusted<ControlRequest>(request, "request")).dump();
  } catch (const Error& error) {
    return Json{{"error", error.what()}}.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
}

LabControl::LabControl(const std::filesystem::path& path) : path_(path) {
  const auto address = address_of(path);
  if (somebody_listens(address)) {
    throw ConfigError(fmt::format("{}: a lab runs in this folder: end it, or choose another folder",
                                  path.parent_path().string()));
  }
  ::unlink(path.c_str());  // left by a lab that was killed
  listener_ = ::socket(AF_UNIX, kSocketType, 0);
  const bool listens =
      ::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
      ::listen(listener_, SOMAXCONN) == 0;
  if (!listens) {
    const int error = errno;
    ::close(listener_);
    throw ConfigError(fmt::format("{}: {}", path.string(), std::strerror(error)));
  }
  events_ = ::epoll_create1(EPOLL_CLOEXEC);
  watch(events_, listener_);
}

// A client that is there still notices by itself when this process ends.
LabControl::~LabControl() {
  ::close(events_);
  ::close(listener_);
  ::unlink(path_.c_str());
}

void LabControl::serve(Router& router) {
  // The router must not wait, so the descriptors are only asked for what is there.
  std::array<epoll_event, 16> ready;
  const int count = ::epoll_wait(events_, ready.data(), static_cast<int>(ready.size()), 0);
  for (int i = 0; i < count; ++i) {
    const int descriptor = ready[i].data.fd;
    if (descriptor == listener_) {
      const int client = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (client >= 0) watch(events_, client);
      continue;
    }
    // A client sends one request; whoever sends a longer one gets an answer about its first part.
    std::string request(kMostRequestBytes, '\0');
    const auto bytes = ::recv(descriptor, request.data(), request.size(), 0);
    if (bytes > 0) {
      request.resize(static_cast<std::size_t>(bytes));
      const auto answer = answer_request(router, request);
      // A client that does not receive its answer has left.
      ::send(descriptor, answer.data(), answer.size(), MSG_NOSIGNAL);
    }
    ::close(descriptor);
  }
}

}  // namespace farstep::wan
