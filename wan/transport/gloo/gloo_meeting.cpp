// The round trips of a mesh must not add up by peers. So each step is taken with all peers before
// the next one begins: all listen, all say where, all dial. Gloo's connect() waits, and so has a
// thread for each connection meanwhile.
#include "wan/transport/gloo/gloo_meeting.h"

#include <gloo/transport/tcp/address.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <utility>

#include "wan/sockets/local_address.h"
#include "wan/transport/gloo/chosen_port.h"
#include "wan/transport/network_notice.h"

namespace farstep::wan {

namespace {

using std::chrono::milliseconds;

SocketAddress address_in(const std::vector<char>& gloo_address) {
  return SocketAddress(gloo::transport::tcp::Address(gloo_address).getSockaddr());
}

// Gloo numbers the pairs of a device that listens for them. Each one has a device to itself then,
// so the peer's number is the own one.
std::vector<char> gloo_address(const SocketAddress& peer, const std::vector<char>& own) {
  const auto number = gloo::transport::tcp::Address(own).getSeq();
  return gloo::transport::tcp::Address(peer.storage(), number).bytes();
}

// Gloo's message has no number of the system's error, so the port is tried once more. Returns 0 if
// it is free.
int listening_error(const SocketAddress& address) {
  try {
    listen_tcp(address);
    return 0;
  } catch (const TcpError& error) {
    return error.error();
  }
}

}  // namespace

milliseconds to_milliseconds(double seconds) {
  constexpr double kMostSeconds = 1e9;
  const double limited = std::min(seconds, kMostSeconds);
  return std::max(milliseconds(1), milliseconds(static_cast<int64_t>(limited * 1e3)));
}

GlooMeeting::GlooMeeting(const MeshOptions& mesh, KeptConnections& kept, Store& store,
                         std::vector<int> taken)
    : mesh_(mesh), kept_(kept), store_(store), taken_(std::move(taken)) {}

std::map<int, GlooConnectionPtr> GlooMeeting::connect(const std::vector<int>& peers,
                                                      const std::vector<PeerLink>& links) {
  for (const int peer : peers) {
    made_[peer] = std::make_unique<GlooConnection>(mesh_.address, mesh_.generation);
    listen(*made_[peer], peer);
  }
  // Without a check of the network nobody knows from where the peers come.
  if (!links.empty()) keep_strangers_away(links);
  for (const int peer : peers) offer(peer, links.empty() ? "" : links[peer].source_address);
  const auto addresses = exchange_addresses();
  {
    std::vector<std::future<void>> pending;
    for (const auto& [peer, theirs] : addresses) {
      for (int lane = 0; lane < mesh_.lanes; ++lane) {
        const auto& there = theirs[static_cast<std::size_t>(lane)];
        pending.push_back(std::async(
            std::launch::async, [this, peer = peer, lane, &there] { dial(peer, lane, there); }));
      }
    }
  }
  if (failure_) throw PeerError(*failure_);  // without the lock: all threads have ended
  find_sockets(addresses);
  if (failure_) throw PeerError(*failure_);
  return std::move(made_);
}

void GlooMeeting::listen(GlooConnection& connection, int peer) {
  connection.lanes.resize(static_cast<std::size_t>(mesh_.lanes));
  for (int lane = 0; lane < mesh_.lanes; ++lane) {
    listen(connection.lanes[static_cast<std::size_t>(lane)], mesh_.port_for(peer, lane));
  }
}

void GlooMeeting::listen(GlooLane& lane, int port) {
  const SocketAddress address(mesh_.address, port);
  try {
    const ChosenPort chosen(port);
    lane.context = kept_.device(address.ip())->createContext(kSelf, kBoth);
    // Gloo waits five times its timeout for a connection.
    lane.context->setTimeout(to_milliseconds(mesh_.connect_seconds / 5));
    lane.own_address = lane.context->createPair(kPeer)->address().bytes();
  } catch (const std::exception& error) {
    const auto who = fmt::format("network.port of {}", mesh_.sites[mesh_.rank]);
    if (const int reason = listening_error(address)) throw_cannot_listen(who, address, reason);
    throw PeerError("",
                    fmt::format("{}: cannot listen on {}: {}", who, address.text(), error.what()));
  }
}

// Lets only a peer's source address reach the ports that wait for it.
void GlooMeeting::keep_strangers_away(const std::vector<PeerLink>& links) {
  const auto sockets = process_sockets();
  for (auto& [peer, connection] : made_) {
    for (auto& lane : connection->lanes) {
      const auto own = address_in(lane.own_address);
      const auto found = std::ranges::find_if(
          sockets, [&](const auto& socket) { return !socket.remote && socket.local == own; });
      FARSTEP_CHECK(found != sockets.end(), "no socket listens on {}", own.text());
      accept_only_from(found->fd, links[static_cast<std::size_t>(peer)].source_address);
    }
  }
}

void GlooMeeting::offer(int peer, const std::string& source_ip) {
  if (mesh_.relay == nullptr) return;
  for (int lane = 0; lane < mesh_.lanes; ++lane) {
    auto& own = made_.at(peer)->lanes[static_cast<std::size_t>(lane)];
    own.offer = mesh_.relay->offer(mesh_.sites[peer], service(mesh_.rank, peer, lane),
                                   address_in(own.own_address), source_ip);
  }
}

// One value has the ports for all peers and lanes, in the form of the check's.
std::map<int, std::vector<SocketAddress>> GlooMeeting::exchange_addresses() {
  const auto lanes = static_cast<std::size_t>(mesh_.lanes);
  const auto key = [&](int rank) { return fmt::format("gloo/{}/{}", mesh_.generation, rank); };
  NetworkNotice own{.address = mesh_.address,
                    .nonce = {},
                    .ports = std::vector<int>(mesh_.sites.size() * lanes, 0),
                    .failure = {}};
  std::vector<std::string> keys;
  for (const auto& [peer, connection] : made_) {
    keys.push_back(key(peer));
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      own.ports[static_cast<std::size_t>(peer) * lanes + lane] =
          address_in(connection->lanes[lane].own_address).port();
    }
  }
  const auto texts = store_.put_and_get(key(mesh_.rank), text_of(own), keys);
  std::map<int, std::vector<SocketAddress>> addresses;
  auto text = texts.begin();
  for (const auto& [peer, connection] : made_) {
    try {
      const auto notice =
          read_network_notice(*text++, static_cast<int>(mesh_.sites.size() * lanes));
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        const auto port = notice.ports.at(static_cast<std::size_t>(mesh_.rank) * lanes + lane);
        addresses[peer].emplace_back(notice.address, port);
      }
    } catch (const Error& error) {
      throw PeerError(mesh_.sites[peer], fmt::format("the addresses of {} cannot be read: {}",
                                                     mesh_.sites[peer], error.what()));
    }
  }
  return addresses;
}

// Connects to a peer that listens too. Gloo decides which of the two dials, by their addresses.
// With a relay the peer's own one is an address at its machine, and a way leads there.
void GlooMeeting::dial(int peer, int lane_number, const SocketAddress& there) {
  try {
    auto& lane = made_.at(peer)->lanes[static_cast<std::size_t>(lane_number)];
    if (mesh_.relay != nullptr) {
      lane.way = mesh_.relay->way_to(mesh_.sites[peer], kFirstDataLane + lane_number,
                                     service(peer, mesh_.rank, lane_number), loopback_ip(peer));
    }
    lane.context->getPair(kPeer)->connect(
        gloo_address(lane.way ? lane.way->address : there, lane.own_address));
  } catch (const std::exception& error) {
    fail(peer, error.what());
  }
}

// Closed lanes end the waits of the others.
void GlooMeeting::fail(int peer, const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_.emplace(mesh_.sites[peer],
                     fmt::format("the connection of {} to {} failed: {}", mesh_.sites[mesh_.rank],
                                 mesh_.sites[peer], reason));
  }
  for (auto& [rank, connection] : made_) connection->close();
}

// Of a connection the end that accepted keeps the address that it listened on; the other one has
// the address that it dialed at its far end. A port may be that of a kept connection too.
void GlooMeeting::find_sockets(const std::map<int, std::vector<SocketAddress>>& addresses) {
  auto sockets = process_sockets();
  std::erase_if(sockets, [&](const ProcessSocket& socket) {
    return !socket.remote || std::ranges::find(taken_, socket.fd) != taken_.end();
  });
  for (auto& [peer, connection] : made_) {
    for (std::size_t number = 0; number < connection->lanes.size(); ++number) {
      auto& lane = connection->lanes[number];
      const auto here = address_in(lane.own_address);
      const auto there = lane.way ? lane.way->address : addresses.at(peer)[number];
      const auto found = std::ranges::find_if(sockets, [&](const ProcessSocket& socket) {
        return socket.local == here || *socket.remote == there;
      });
      if (found == sockets.end()) return fail(peer, "it closed the connection at once");
      try {
        keep_alive(found->fd);
        lane.socket = std::make_shared<SocketCounter>(found->fd);
      } catch (const InternalError& error) {
        return fail(peer, error.what());  // it has just closed it
      }
    }
  }
}

std::string GlooMeeting::service(int from, int to, int lane) const {
  return fmt::format("gloo/{}/{}/{}/{}", mesh_.generation, from, to, lane);
}

}  // namespace farstep::wan
