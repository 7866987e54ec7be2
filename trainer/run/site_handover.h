// Moves the run's state from a member to a newcomer, over a connection beside the data path.
//
// The message: eight bytes with the size of a JSON text (SharedState), the text, theta_global, and
// the outer momentum, both fp32. All machines of a run have the same byte order.
//
// Belongs to the training thread, except wait_for_copies(). Each newcomer has a thread that sends
// to it, and theta_global and momentum are copied by another one.
#pragma once

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

#include "trainer/base/newest_task.h"
#include "trainer/base/worker.h"
#include "trainer/peers/site_peers.h"
#include "trainer/round/handover.h"
#include "trainer/round/run.h"
#include "wan/transport/bulk_transfer.h"

namespace farstep {

class SiteHandover : public Handover {
 public:
  // `peers` must outlive this. `network` is this site's.
  SiteHandover(SitePeers& peers, const NetworkConfig& network);

  // Copies theta_global and momentum behind training. Gives up an older state that is still being
  // sent to one of these newcomers, and does not wait for the end of that.
  void begin(Run& run, int64_t round, std::span<const wan::Newcomer> newcomers) override;
  // By the rate to which the transfer is limited, or else the measured one of the uplink.
  std::optional<double> expected_seconds(const Run& run) const override;
  void wait_for_copies() override;
  // Waits for the end of all transfers, each of which has its deadlines. Gives them up once `stop`
  // is requested.
  void finish(const std::stop_token& stop);
  // Gives up all transfers. Afterwards nothing of a run is read.
  void end();

  // Of a newcomer: takes the run's state, and attends the round after it. After the last round
  // there is none to attend, and the state is saved. Tries again, with a newer state, as long as
  // the run goes on. Calls `record_start` once, when it has the first state. Returns false if a
  // stop was requested. Throws PeerError if the run ends without it, PeerError or
  // ConfigError if this site and another one cannot reach each other, and what BulkReceiver
  // throws where it cannot listen.
  bool join(Run& run, const std::function<void()>& record_start, const std::stop_token& stop);

 private:
  // Where a newcomer waits for a donor.
  struct Door {
    wan::BulkReceiver receiver;
    wan::FetchMessage request;          // names it to the donor
    std::shared_ptr<const void> offer;  // with secure links
  };
  class Copy;
  using CopyUnderWay = std::shared_future<std::shared_ptr<const Copy>>;
  // The state's way to a newcomer.
  struct Transfer {
    std::string site;
    wan::OfferMessage offer;
    wan::Way way;
    wan::BulkLimits limits;
    CopyUnderWay copy;
  };
  struct Sender {
    wan::FetchMessage request = {};
    int64_t round = 0;
    NewestTask task = {};
  };

  // Returns whether this state is sent to the newcomer already.
  bool is_sent(const wan::Newcomer& newcomer, int64_t round) const;
  CopyUnderWay begin_copy(Run& run);
  // Offers the state and sends it. Logs a failure.
  void send(const Transfer& transfer, const std::stop_token& stop);
  wan::BulkLimits limits_of(const Run& run) const;
  Door listen(const Run& run) const;
  // Fetches the state once and makes it the run's. Returns nullopt if a stop was requested.
  std::optional<SharedState> fetch(Run& run, Door& door, const std::stop_token& stop);
  // Returns where the donor, this site, reaches a newcomer.
  wan::Way way_to(const wan::Newcomer& newcomer) const;
  // Returns where a newcomer that nobody can connect to reaches this site; empty: nowhere.
  std::string own_endpoint() const;
  // Lets such a newcomer's secure port connect to the donor.
  void connect_to(const std::string& donor, const std::string& endpoint) const;

  SitePeers& peers_;
  const NetworkConfig network_;
  std::mutex mutex_;
  std::shared_future<void> newest_copied_;  // guarded by mutex_
  std::map<std::string, Sender> senders_;   // the newest by newcomer
  Worker copier_;
};

}  // namespace farstep
