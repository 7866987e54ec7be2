// A site's place among its peers: the coordinator (where this site hosts it), the membership, and
// the data path.
//
// Belongs to one thread.
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "trainer/base/clock.h"
#include "trainer/config/site_config.h"
#include "wan/membership/coordinator.h"
#include "wan/membership/member.h"
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

  // Says goodbye. Where the coordinator is hosted, waits for the other sites to leave as well, or
  // until `patience_seconds` are over.
  void leave(Outcome outcome, const std::string& message, double patience_seconds);

  const Welcome& welcome() const { return welcome_; }
  const RunConfig& run() const { return run_; }
  Member& member() { return *member_; }
  // The data path, for what it counts; after connect().
  const Transport& transport() const { return *data_path_; }

 private:
  SiteNetwork(const LoadedSite& loaded, Clock& clock);
  std::unique_ptr<Transport> emulate_links(std::unique_ptr<Transport> inner,
                                           double stall_seconds) const;

  const SiteConfig site_;
  Clock& clock_;
  std::unique_ptr<Coordinator> coordinator_;  // where it is hosted
  std::unique_ptr<Member> member_;
  Welcome welcome_;
  RunConfig run_;
  std::unique_ptr<Transport> data_path_;
};

}  // namespace farstep
