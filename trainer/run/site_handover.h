// Moves the run's state from a member to a newcomer, over a connection beside the data path.
//
// The message: eight bytes with the size of a JSON text (SharedState), the text, theta_global, and
// the outer momentum, both fp32. All machines of a run have the same byte order.
//
// Belongs to the training thread. Each newcomer has a thread that sends to it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>

#include "trainer/peers/site_peers.h"
#include "trainer/round/handover.h"
#include "trainer/round/run.h"
#include "wan/transport/bulk_transfer.h"

namespace farstep {

class SiteHandover : public Handover {
 public:
  // `peers` must outlive this. `network` is this site's.
  SiteHandover(SitePeers& peers, const NetworkConfig& network);

  // Copies theta_global and momentum first, which the next sync changes. Gives up an older state
  // that is still being sent to one of these newcomers; the destructor gives up all.
  void begin(Run& run, std::span<const Newcomer> newcomers) override;

  // Of a newcomer: waits for the end of a round, takes the state after it, and attends the next
  // round. Tries again, with a newer state, as long as the run goes on. Calls `record_start` once,
  // when it has the first state. Returns false if a stop was requested. Throws PeerError if the run
  // ends, and what BulkReceiver throws where it cannot listen.
  bool join(Run& run, const std::function<void()>& record_start, const std::stop_token& stop);

 private:
  // Where a newcomer waits for a donor.
  struct Door {
    BulkReceiver receiver;
    FetchMessage request;               // names it to the donor
    std::shared_ptr<const void> offer;  // with secure links
  };

  Door listen(const Run& run) const;
  // Fetches the state once and makes it the run's. Returns nullopt if a stop was requested.
  std::optional<SharedState> fetch(Run& run, Door& door, const std::stop_token& stop);
  // Returns where the donor, this site, reaches a newcomer.
  Way way_to(const Newcomer& newcomer) const;
  // Returns where a newcomer that nobody can connect to reaches this site; empty: nowhere.
  std::string own_endpoint() const;
  // Lets such a newcomer's secure port connect to the donor.
  void connect_to(const std::string& donor, const std::string& endpoint) const;

  SitePeers& peers_;
  const NetworkConfig network_;
  std::map<std::string, std::jthread> senders_;  // the newest by newcomer
};

}  // namespace farstep
