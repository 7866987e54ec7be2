// Every pair of sites is tried in both directions before its data path is made. Gloo alone would
// report a wrong address or a closed port as a timeout without a cause. All sites hear of all
// faults, so that none goes on without the others.
#include "wan/transport/network_check.h"

#include <poll.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "trainer/base/error.h"
#include "wan/sockets/first_lines.h"
#include "wan/sockets/local_address.h"
#include "wan/sockets/process_sockets.h"
#include "wan/sockets/random_token.h"
#include "wan/sockets/tcp.h"
#include "wan/sockets/waker.h"
#include "wan/transport/network_notice.h"

namespace farstep::wan {

namespace {

// A router may break a connection at any time, and a full reception drops one.
constexpr int kAttempts = 3;
// Of a listener: all peers may come at the same moment, and strangers besides.
constexpr int kBacklog = 16;

// Answers a visitor who sends a site's nonce with the own nonce, and records the visitor's address.
class Reception {
 public:
  Reception(std::vector<Socket> listeners, std::string nonce, std::map<std::string, int> ranks,
            double line_seconds)
      : listeners_(std::move(listeners)),
        nonce_(std::move(nonce)),
        ranks_(std::move(ranks)),
        line_seconds_(line_seconds),
        visitors_(line_seconds),
        thread_([this] { run(); }) {}
  ~Reception() { close(); }

  // Stops answering; returns the source address of each site.
  std::map<int, std::string> close() {
    if (thread_.joinable()) {
      stop_.wake();
      thread_.join();
    }
    return std::move(sources_);
  }

 private:
  void run() {
    constexpr int kPauseMilliseconds = 100;  // until a descriptor may be free again
    bool has_room = true;
    while (true) {
      std::vector<pollfd> entries{{stop_.fd(), POLLIN, 0}};
      const short events = has_room ? POLLIN : 0;
      for (const auto& listener : listeners_) entries.push_back({listener.fd(), events, 0});
      const auto late = visitors_.begin_wait(entries);
      int wait = late ? milliseconds_until(*late) : -1;
      if (!has_room) wait = late ? std::min(wait, kPauseMilliseconds) : kPauseMilliseconds;
      if (poll(entries.data(), entries.size(), wait) < 0) continue;
      if (entries[0].revents != 0) return;
      visitors_.hear(
          std::span(entries).subspan(1 + listeners_.size()),
          [this](const Socket& visitor, const std::string& line) { answer(visitor, line); });
      // In a run of more sites than FirstLines::kMostVisitors, sites that visit at the same moment
      // could drop each other. A site whose visit fails tries again, and reports the failure. So
      // does one that waits at a listener because this process has no descriptor left.
      has_room = true;
      for (const auto& listener : listeners_) {
        if (const int error = visitors_.admit(listener); error != 0) {
          if (has_room) spdlog::warn("a site that visits waits: {}", std::strerror(error));
          has_room = false;
        }
      }
    }
  }

  void answer(const Socket& visitor, const std::string& line) {
    const auto rank = ranks_.find(line);
    if (rank == ranks_.end()) return;
    // The data path accepts from this address alone. On a machine with several addresses it may
    // differ from the advertised one.
    if (const auto source = SocketAddress::remote_of(visitor.fd())) {
      sources_[rank->second] = source->ip();
    }
    send_line(visitor, nonce_, deadline_after(line_seconds_));
  }

  const std::vector<Socket> listeners_;
  const std::string nonce_;
  const std::map<std::string, int> ranks_;
  const double line_seconds_;
  const Waker stop_;
  FirstLines visitors_;                 // used by the thread only
  std::map<int, std::string> sources_;  // used by the thread only, until it is joined
  std::thread thread_;                  // the last member: it uses all others
};

class NetworkCheck {
 public:
  NetworkCheck(const MeshOptions& mesh, Store& store, const Offers& offers)
      : mesh_(mesh), store_(store), offers_(offers) {}

  NetworkFindings run() {
    const auto nonce = random_token();
    // Listens before it publishes: a peer that reads the notice may connect at once.
    auto [listeners, own] = listen(nonce);
    // A failure is published too, so that the peers do not wait for this site.
    const auto texts = share(store_, prefix() + "/notice", text_of(own), mesh_.rank, mesh_.size());
    std::vector<NetworkNotice> notices;
    for (int rank = 0; rank < mesh_.size(); ++rank) notices.push_back(read_notice(rank, texts));
    if (auto faults = faults_in(notices); !faults.empty()) {
      wait_until_all_know(store_, prefix() + "/known", mesh_.rank, mesh_.size());
      return {.links = {}, .faults = std::move(faults)};
    }
    std::vector<Offers> offers;
    for (auto& notice : notices) offers.push_back(std::move(notice.kept));
    std::vector<PeerLink> found(mesh_.sites.size());
    for (int peer : peers()) found[peer].is_kept = is_kept(offers, mesh_.rank, peer);
    if (are_all_kept(offers)) return {.links = std::move(found), .faults = {}};
    std::map<std::string, int> ranks;
    for (int rank = 0; rank < mesh_.size(); ++rank) ranks[notices[rank].nonce] = rank;
    Reception reception(std::move(listeners), nonce, ranks, mesh_.connect_seconds);

    // The reception answers until all sites have shared their faults: a slow site may probe late.
    // After share_faults() every site has finished its own probes.
    const auto probes = probe_all(notices, ranks, found);
    auto faults = share_faults(store_, prefix(), mesh_, faults_in(probes));
    const auto sources = reception.close();
    if (!faults.empty()) return {.links = {}, .faults = std::move(faults)};
    for (int peer : peers()) {
      if (found[peer].is_kept) continue;
      // If all probes have succeeded, every peer has been here.
      FARSTEP_CHECK(sources.contains(peer), "{} passed without a visit", mesh_.sites[peer]);
      found[peer] = {sources.at(peer), probes[peer].rtt_seconds};
    }
    return {.links = std::move(found), .faults = {}};
  }

 private:
  struct Probe {
    double rtt_seconds = 0;
    std::string failure;  // empty if the peer was reached
  };

  std::vector<int> peers() const {
    std::vector<int> peers;
    for (int peer = 0; peer < mesh_.size(); ++peer) {
      if (peer != mesh_.rank) peers.push_back(peer);
    }
    return peers;
  }
  std::string prefix() const { return fmt::format("network/{}", mesh_.generation); }

  // Peers probe one port each; of chosen ones, those of all lanes must be free.
  std::pair<std::vector<Socket>, NetworkNotice> listen(const std::string& nonce) const {
    std::vector<Socket> listeners;
    NetworkNotice notice{.address = mesh_.address,
                         .nonce = nonce,
                         .ports = std::vector<int>(mesh_.sites.size(), 0),
                         .failure = {},
                         .kept = offers_};
    const auto add = [&](int port) {
      const SocketAddress address(mesh_.address, port);
      try {
        listeners.push_back(listen_tcp(address, std::max(kBacklog, mesh_.size())));
        return SocketAddress::local_of(listeners.back().fd())->port();
      } catch (const TcpError& error) {
        notice.failure = fmt::format("network.port: {} {}", mesh_.sites[mesh_.rank],
                                     listening_failure(address, error.error()));
        notice.is_temporary = is_temporary_for_listening(error.error());
        return 0;
      }
    };
    // One that the system chooses serves all peers: no firewall knows it.
    const int any = mesh_.port == 0 ? add(0) : 0;
    for (int peer : peers()) {
      notice.ports[peer] = mesh_.port == 0 ? any : add(mesh_.port_for(peer));
      for (int lane = 1; mesh_.port != 0 && lane < mesh_.lanes; ++lane) {
        add(mesh_.port_for(peer, lane));
      }
    }
    return {std::move(listeners), std::move(notice)};
  }

  NetworkNotice read_notice(int rank, const std::vector<std::string>& texts) const {
    try {
      return read_network_notice(texts[static_cast<std::size_t>(rank)], mesh_.size());
    } catch (const DataError& error) {
      throw PeerError(mesh_.sites[rank],
                      fmt::format("its network notice cannot be read: {}", error.what()));
    }
  }

  // Returns the sites that cannot listen. All sites read the same notices.
  static std::vector<LinkFault> faults_in(const std::vector<NetworkNotice>& notices) {
    std::vector<LinkFault> faults;
    for (std::size_t i = 0; i < notices.size(); ++i) {
      const auto rank = static_cast<int>(i);
      const auto& notice = notices[i];
      if (!notice.failure.empty()) {
        faults.push_back({rank, rank, notice.failure, notice.is_temporary});
      }
    }
    return faults;
  }

  // All peers at the same time: one that does not answer costs connect_seconds only once.
  std::vector<Probe> probe_all(const std::vector<NetworkNotice>& notices,
                               const std::map<std::string, int>& ranks,
                               const std::vector<PeerLink>& found) {
    std::vector<std::future<Probe>> pending(mesh_.sites.size());
    for (int peer : peers()) {
      if (found[peer].is_kept) continue;
      pending[peer] = std::async(std::launch::async, [this, peer, &notices, &ranks] {
        return probe(peer, notices, ranks);
      });
    }
    std::vector<Probe> probes(mesh_.sites.size());
    for (int peer : peers()) {
      if (pending[peer].valid()) probes[peer] = pending[peer].get();
    }
    return probes;
  }

  // Connects to the peer's advertised address as the data path will, and exchanges nonces.
  Probe probe(int peer, const std::vector<NetworkNotice>& notices,
              const std::map<std::string, int>& ranks) const {
    const SocketAddress address(notices[peer].address, notices[peer].ports[mesh_.rank]);
    if (address.family() != SocketAddress(mesh_.address, 0).family()) {
      return {0, describe_other_family(peer, address)};
    }
    const auto deadline = deadline_after(mesh_.connect_seconds);
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      if (auto found = probe_once(peer, address, notices, ranks, deadline)) return *found;
    }
    return {0, describe_failure(peer, address, "the connection was closed")};
  }

  // Returns nullopt if a connection that existed broke.
  std::optional<Probe> probe_once(int peer, const SocketAddress& address,
                                  const std::vector<NetworkNotice>& notices,
                                  const std::map<std::string, int>& ranks,
                                  Deadline deadline) const {
    std::optional<Socket> connection;
    try {
      const auto& socket = connection.emplace(connect_tcp(address, deadline));
      send_line(socket, notices[mesh_.rank].nonce, deadline);
      const auto answer = ranks.find(receive_line(socket, deadline));
      if (answer == ranks.end()) {
        return Probe{0, describe_failure(peer, address, "answered by none of the sites")};
      }
      if (answer->second != peer) {
        const auto who = "answered by " + mesh_.sites[answer->second];
        return Probe{0, describe_failure(peer, address, who)};
      }
      return Probe{kernel_rtt_seconds(socket.fd()), ""};
    } catch (const TcpError& error) {
      if (connection && std::chrono::steady_clock::now() < deadline) return std::nullopt;
      return Probe{0, describe_failure(peer, address, error.what())};
    }
  }

  std::string describe_other_family(int peer, const SocketAddress& address) const {
    const auto& name = mesh_.sites[peer];
    const auto& own = mesh_.sites[mesh_.rank];
    const bool is_ip6 = address.family() == AF_INET6;
    return fmt::format(
        "network.address: {} advertises {}, which is {}, and {} advertises {}, which is {}: set "
        "network.address of one of them to an address of the other's kind. If neither has the "
        "other kind, use keys and give one of the two machines both kinds",
        name, address.ip(), is_ip6 ? "IPv6" : "IPv4", own, mesh_.address, is_ip6 ? "IPv4" : "IPv6");
  }

  std::string describe_failure(int peer, const SocketAddress& address,
                               const std::string& what) const {
    const auto& name = mesh_.sites[peer];
    return fmt::format(
        "network.address: {} advertises {}, which {} cannot reach ({}, {} s allowed): set "
        "network.address of {} to {}, or open TCP port {} there",
        name, address.text(), mesh_.sites[mesh_.rank], what, mesh_.connect_seconds, name,
        address.is_loopback() ? "one that reaches beyond its own machine"
                              : fmt::format("one that {} can reach", mesh_.sites[mesh_.rank]),
        address.port());
  }

  std::vector<LinkFault> faults_in(const std::vector<Probe>& probes) const {
    std::vector<LinkFault> faults;
    for (int peer = 0; peer < mesh_.size(); ++peer) {
      if (!probes[peer].failure.empty()) faults.push_back({mesh_.rank, peer, probes[peer].failure});
    }
    return faults;
  }

  const MeshOptions& mesh_;
  Store& store_;
  const Offers& offers_;
};

}  // namespace

NetworkFindings check_network(const MeshOptions& mesh, Store& store, const Offers& offers) {
  return NetworkCheck(mesh, store, offers).run();
}

}  // namespace farstep::wan
