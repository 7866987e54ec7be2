#include "trainer/doctor/coordinator_answer.h"

#include <poll.h>

#include <cerrno>

#include "trainer/peers/secure_port.h"
#include "wan/sockets/local_address.h"
#include "wan/sockets/tcp.h"
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

Finding of_refusal(const std::string& endpoint) {
  return warning(kAnswer, fmt::format("{}: the machine can be reached, and {}", endpoint, kNobody));
}

Finding of_silence(const std::string& endpoint, const std::string& reason) {
  return fault(kAnswer, ErrorKind::kPeer,
               fmt::format("{} does not answer ({}): is the address right, the machine up, and its "
                           "TCP port open in firewall and router?",
                           endpoint, reason));
}

// Without keys a coordinator greets whoever connects.
Finding plain_answer(const std::string& endpoint, const wan::SocketAddress& address,
                     wan::Deadline deadline) {
  try {
    const auto socket = connect_tcp(address, deadline);
    pollfd entry{socket.fd(), POLLIN, 0};
    unsigned char first = 0;
    if (::poll(&entry, 1, wan::milliseconds_until(deadline)) == 1 &&
        ::recv(socket.fd(), &first, 1, 0) == 1 && first == kGreeting) {
      return ok(kAnswer, fmt::format("a coordinator answers at {}", endpoint));
    }
    return fault(kAnswer, ErrorKind::kPeer,
                 fmt::format("{}: who listens there is no coordinator without keys: is the port "
                             "right, and do all sites have network.keys, or none?",
                             endpoint));
  } catch (const wan::TcpError& error) {
    if (error.error() == ECONNREFUSED) return of_refusal(endpoint);
    return of_silence(endpoint, error.what());
  }
}

// With keys the tunnel of the run is made, from a free port of this machine: the site's own may be
// in use by the run itself.
Finding secure_answer(const SiteConfig& site, const CoordinatorPlace& coordinator,
                      const wan::SocketAddress& address, wan::Deadline deadline,
                      const Clock& clock) {
  try {
    connect_tcp(address, deadline);
  } catch (const wan::TcpError& error) {
    if (error.error() == ECONNREFUSED) return of_refusal(coordinator.endpoint);
    return of_silence(coordinator.endpoint, error.what());
  }
  SecurePort port(site.network.keys, wan::SocketAddress("127.0.0.1", 0), std::nullopt, clock);
  port.way_to_coordinator(coordinator);
  const auto reason = port.gateway().connect(coordinator.site, wan::kControlLane, deadline);
  if (reason.empty()) {
    return ok(kAnswer, fmt::format("site {} answers at {}, and the keys of both are good",
                                   coordinator.site, coordinator.endpoint));
  }
  return fault(kAnswer, ErrorKind::kPeer,
               fmt::format("{}: no secure link to site {}: {}: do both have keys of one authority, "
                           "and is it that site's port?",
                           coordinator.endpoint, coordinator.site, reason));
}

}  // namespace

Finding coordinator_answer(const SiteConfig& site, const CoordinatorPlace& coordinator,
                           double patience_seconds, const Clock& clock) {
  return finding_of(kAnswer, [&] {
    const auto [host, number] = wan::parse_endpoint(kField, coordinator.endpoint);
    const wan::SocketAddress address(wan::ip_of_host(kField, host), number);
    const auto deadline = wan::deadline_after(patience_seconds);
    return site.network.keys.empty() ? plain_answer(coordinator.endpoint, address, deadline)
                                     : secure_answer(site, coordinator, address, deadline, clock);
  });
}

}  // namespace farstep
