// The system says in which order to try the addresses of a name, not which of them works. A name of
// both families often has one that does not.
#include "wan/sockets/host_addresses.h"

#include <fmt/ranges.h>
#include <netdb.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

namespace farstep::wan {

namespace {

// Between two look-ups of a name that leads nowhere.
constexpr auto kLookUpPause = std::chrono::seconds(1);

std::string cause_of(const SocketAddress& address, int error) {
  const bool is_ip6 = address.family() == AF_INET6;
  switch (error) {
    case ECONNREFUSED:
      return "the machine is there, and nobody listens at that port";
    case ETIMEDOUT:
      return fmt::format("the machine is off, or a firewall or router on the way drops TCP port {}",
                         address.port());
    case EADDRNOTAVAIL:  // none of that family to connect from
    case ENETUNREACH:
      return is_ip6 ? "this machine has no way to IPv6 addresses" : "this machine has no way there";
    case EHOSTUNREACH:
      return "no machine there has that address, or a firewall refuses it";
    case EAFNOSUPPORT:
      return fmt::format("this machine has no {}", is_ip6 ? "IPv6" : "IPv4");
    default:
      return "";
  }
}

std::string unknown_host(const HostPort& place, int error) {
  const auto reason =
      fmt::format("no address is known for {} ({})", place.host,
                  error == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(error));
  if (error == EAI_AGAIN) {
    return reason +
           ": is this machine online, and does /etc/resolv.conf name a server that answers?";
  }
  return reason +
         ": correct the name, add it to the name service or to this machine's /etc/hosts, or write "
         "the IP address instead";
}

}  // namespace

std::vector<SocketAddress> look_up(const std::string& field, const HostPort& place) {
  if (usual_ip(place.host)) return {SocketAddress(place.host, place.port)};
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(place.host.c_str(), nullptr, &hints, &list);
  const auto reason = error == 0 ? "" : unknown_host(place, error);
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list, [](addrinfo* entries) {
    if (entries != nullptr) freeaddrinfo(entries);
  });
  if (error != 0) throw UnknownHostError(fmt::format("{}: {}", field, reason));
  std::vector<SocketAddress> found;
  for (const auto* entry = list; entry != nullptr; entry = entry->ai_next) {
    sockaddr_storage storage{};
    std::memcpy(&storage, entry->ai_addr, entry->ai_addrlen);
    const auto address = SocketAddress(storage).with_port(place.port);
    if (std::ranges::find(found, address) == found.end()) found.push_back(address);
  }
  return found;
}

std::string text_of(const std::vector<SocketAddress>& addresses) {
  std::vector<std::string> texts;
  for (const auto& address : addresses) texts.push_back(address.ip());
  return fmt::format("{}", fmt::join(texts, " and "));
}

std::string connecting_failure(const SocketAddress& address, const TcpError& error) {
  const auto cause = cause_of(address, error.error());
  return cause.empty() ? error.what() : fmt::format("{}: {}", error.what(), cause);
}

HostAddresses::HostAddresses(HostPort place, LookUp look_up)
    : place_(std::move(place)),
      look_up_(std::move(look_up)),
      is_fixed_(usual_ip(place_.host).has_value()) {
  if (is_fixed_) addresses_.emplace_back(place_.host, place_.port);
}

HostAddresses::LookUp HostAddresses::of_system() {
  return [](const HostPort& place) { return wan::look_up(place.text(), place); };
}

std::optional<SocketAddress> HostAddresses::next(double patience_seconds) {
  const std::lock_guard lock(mutex_);
  if (is_fixed_ && next_ == addresses_.size()) {
    next_ = 0;
    return std::nullopt;
  }
  if (next_ == addresses_.size()) ask();
  take_answer(patience_seconds);
  return next_ < addresses_.size() ? std::optional(addresses_[next_]) : std::nullopt;
}

void HostAddresses::fail(const SocketAddress& address, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  std::erase_if(failures_, [&](const auto& failure) { return failure.first == address; });
  failures_.emplace_back(address, reason);
  if (next_ < addresses_.size() && addresses_[next_] == address) ++next_;
}

void HostAddresses::succeed(const SocketAddress& address) {
  const std::lock_guard lock(mutex_);
  worked_ = address;
  failures_.clear();
  next_ = 0;
  std::stable_partition(addresses_.begin(), addresses_.end(),
                        [&](const auto& one) { return one == address; });
}

std::string HostAddresses::failure() const {
  const std::lock_guard lock(mutex_);
  if (failures_.empty()) return unknown_;
  std::vector<std::string> texts;
  for (const auto& [address, reason] : failures_) {
    texts.push_back(fmt::format("{} ({})", address.text(), reason));
  }
  const auto all = fmt::format("{}", fmt::join(texts, ", "));
  return is_fixed_ ? all : fmt::format("{}, which is {}", place_.host, all);
}

// A thread that waits for a name service cannot be woken. So none is waited for: it has copies of
// all that it uses.
void HostAddresses::ask() {
  const auto now = std::chrono::steady_clock::now();
  if (answer_.valid() || now < next_ask_) return;
  next_ask_ = now + kLookUpPause;
  std::promise<std::vector<SocketAddress>> promise;
  answer_ = promise.get_future();
  std::thread([promise = std::move(promise), place = place_, look_up = look_up_]() mutable {
    try {
      promise.set_value(look_up(place));
    } catch (...) {
      promise.set_exception(std::current_exception());
    }
  }).detach();
}

// Without an answer the addresses of the one before are tried again: a name service is often away
// together with the line.
void HostAddresses::take_answer(double patience_seconds) {
  if (!answer_.valid()) return;
  const auto patience = std::chrono::duration<double>(patience_seconds);
  if (answer_.wait_for(patience) != std::future_status::ready) return;
  next_ = 0;
  try {
    addresses_ = answer_.get();
  } catch (const Error& error) {
    unknown_ = error.what();
    return;
  }
  unknown_.clear();
  std::stable_partition(addresses_.begin(), addresses_.end(),
                        [&](const auto& one) { return one == worked_; });
  std::erase_if(failures_, [&](const auto& failure) {
    return std::ranges::find(addresses_, failure.first) == addresses_.end();
  });
}

}  // namespace farstep::wan
