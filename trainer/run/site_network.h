// A site's place among its peers: the coordinator (where this site hosts it), the membership, and
// the data path.
//
// Belongs to one thread.
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "outer_optimizer/exchange/exchange.h"
#include "trainer/base/clock.h"
#include "trainer/config/site_config.h"
#include "wan/membership/coordinator.h"
#include "wan/membership/member.h"
#include "wan/transport/gloo_ring.h"
#include "wan/transport/gloo_transport.h"

namespace farstep {

// What messages name as the source of a run config that came over the network.
inline constexpr std::string_view kRunSource = "the run that the coordinator handed out";

class SiteNetwork {
 public:
  // Starts the coordinator if this site hosts it, joins with `request` and waits for all sites.
  // Nothing if stop was requested before they were there. `clock` must outlive this. Throws
  // ConfigError or PeerError.
  static std::unique_ptr<SiteNetwork> join(const LoadedSite& loaded, const JoinRequest& request,
                                           Clock& clock, const std::stop_token& stop);
  ~SiteNetwork();

  // Checks the ways to all peers, then connects the data path, over emulated links if the site's
  // config has some; a loss of a peer aborts it. All sites call it at the same time. Transfers that
  // stand still for `stall_seconds` fail. Throws ConfigError or PeerError.
  Transport& connect(double stall_seconds);
  // The exchange that the run's config names, over the data path or, for a ring, over connections
  // of its own, which are made now; once, after connect(). All sites call it at the same time. Must
  // not outlive this. Throws PeerError.
  std::unique_ptr<Exchange> make_exchange(double stall_seconds);
  // From any thread: all that is under way on the data path, and all to come, fails with
  // PeerError(site, reason).
  void abort(const std::string& site, const std::string& reason);

  // Says goodbye. Where the coordinator is hosted, waits for the other sites to leave as well, or
  // until `patience_seconds` are over.
  void leave(Outcome outcome, const std::string& message, double patience_seconds);

  const Welcome& welcome() const { return welcome_; }
  const RunConfig& run() const { return run_; }
  Member& member() { return *member_; }
  // The data path, for what it counts; after connect().
  const Transport& transport() const { return *data_path_; }
  // All links together, a ring's with them: payload of a ring is what the kernel counted.
  LinkState uplink() const;

 private:
  SiteNetwork(const LoadedSite& loaded, Clock& clock);
  void abort_when_a_peer_is_lost();
  std::unique_ptr<Transport> emulate_links(std::unique_ptr<Transport> inner,
                                           double stall_seconds) const;

  const SiteConfig site_;
  Clock& clock_;
  std::unique_ptr<Coordinator> coordinator_;  // where it is hosted
  std::unique_ptr<Member> member_;
  Welcome welcome_;
  RunConfig run_;
  MeshOptions mesh_;
  std::unique_ptr<Transport> data_path_;
  std::unique_ptr<GlooRing> ring_;  // where the run's exchange is one
};

}  // namespace farstep
