#include "trainer/doctor/coordinator_answer.h"

#include <fmt/ranges.h>
#include <poll.h>

#include <cerrno>
#include <vector>

#include "trainer/peers/secure_port.h"
#include "wan/sockets/host_addresses.h"
#include "wan/transport/relay.h"

namespace farstep {

namespace {

constexpr const char* kAnswer = "answer";
constexpr const char* kField = "coordinator.endpoint";
constexpr const char* kNobody =
    "nobody listens there. Before a run that is as it must be: start the site that hosts the "
    "coordinator, or `farstep doctor --peers` at all sites";
// The first byte of everybody who speaks ZeroMQ.
constexpr unsigned char kGreeting = 0xff;

// What came of the addresses of a coordinator's host, of which the last one answered, or none.
struct Trial {
  std::string endpoint;
  std::vector<std::string> failures;
  bool was_silent = false;  // one of them, or there was no way to it

  std::string text() const { return fmt::format("{}", fmt::join(failures, "; ")); }
};

// A site tries all addresses, so one that does not answer costs time only.
std::string rest_text(const Trial& trial) {
  if (trial.failures.empty()) return "";
  return fmt::format(". Other addresses of the name, which cost every site time, do not: {}",
                     trial.text());
}

Finding of_failures(const Trial& trial) {
  if (!trial.was_silent) {
    return warning(kAnswer, fmt::format("{}: the machine can be reached, and {} ({})",
                                        trial.endpoint, kNobody, trial.text()));
  }
  return fault(kAnswer, ErrorKind::kPeer,
               fmt::format("{} does not answer ({}): is the address right, the machine up, and its "
                           "TCP port open in firewall and router?",
                           trial.endpoint, trial.text()));
}

// Returns a connection to the first address that takes one, each of which has `patience_seconds`.
std::optional<wan::Socket> connect_to_any(const std::vector<wan::SocketAddress>& addresses,
                                          double patience_seconds, Trial& trial) {
  for (const auto& address : addresses) {
    try {
      return connect_tcp(address, wan::deadline_after(patience_seconds));
    } catch (const wan::TcpError& error) {
      trial.was_silent = trial.was_silent || error.error() != ECONNREFUSED;
      trial.failures.push_back(
          fmt::format("{}: {}", address.text(), wan::connecting_failure(address, error)));
    }
  }
  return std::nullopt;
}

// Without keys a coordinator greets whoever connects.
Finding plain_answer(const wan::Socket& socket, const Trial& trial, wan::Deadline deadline) {
  pollfd entry{socket.fd(), POLLIN, 0};
  unsigned char first = 0;
  if (::poll(&entry, 1, wan::milliseconds_until(deadline)) == 1 &&
      ::recv(socket.fd(), &first, 1, 0) == 1 && first == kGreeting) {
    return ok(kAnswer,
              fmt::format("a coordinator answers at {}{}", trial.endpoint, rest_text(trial)));
  }
  return fault(kAnswer, ErrorKind::kPeer,
               fmt::format("{}: who listens there is no coordinator without keys: is the port "
                           "right, and do all sites have network.keys, or none?",
                           trial.endpoint));
}

// With keys the tunnel of the run is made, from a free port of this machine: the site's own may be
// in use by the run itself.
Finding secure_answer(const SiteConfig& site, const CoordinatorPlace& coordinator,
                      const Trial& trial, wan::Deadline deadline, const Clock& clock) {
  SecurePort port(site.network.keys, {wan::SocketAddress("127.0.0.1", 0)}, std::nullopt, clock);
  port.way_to_coordinator(coordinator);
  const auto reason = port.gateway().connect(coordinator.site, wan::kControlLane, deadline);
  if (reason.empty()) {
    return ok(kAnswer, fmt::format("site {} answers at {}, and the keys of both are good{}",
                                   coordinator.site, coordinator.endpoint, rest_text(trial)));
  }
  return fault(kAnswer, ErrorKind::kPeer,
               fmt::format("{}: no secure link to site {}: {}: do both have keys of one authority "
                           "and right clocks, and is it that site's port?",
                           coordinator.endpoint, coordinator.site, reason));
}

}  // namespace

Finding coordinator_answer(const SiteConfig& site, const CoordinatorPlace& coordinator,
                           double patience_seconds, const Clock& clock) {
  return finding_of(kAnswer, [&] {
    const auto addresses = wan::look_up(kField, wan::parse_endpoint(kField, coordinator.endpoint));
    Trial trial{.endpoint = coordinator.endpoint, .failures = {}};
    const auto socket = connect_to_any(addresses, patience_seconds, trial);
    if (!socket) return of_failures(trial);
    // A tunnel tries the addresses from the first on, too.
    const auto turns = static_cast<double>(1 + trial.failures.size());
    const auto deadline = wan::deadline_after(turns * patience_seconds);
    return site.network.keys.empty() ? plain_answer(*socket, trial, deadline)
                                     : secure_answer(site, coordinator, trial, deadline, clock);
  });
}

}  // namespace farstep
