// One site of a run whose training loop is another program's: it takes inner steps of its own on
// flat values, and this takes the outer ones.
//
// A sync is a round of the run: the delta of all values is averaged with the other sites' and the
// outer Nesterov step is taken, as by strategy.kind low_communication. If members are lost, the
// others go on as those of any run do. A process that has left or is lost cannot join again.
//
// One thread calls the methods, except stop().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "trainer/base/clock.h"
#include "trainer/facade/outer_settings.h"
#include "trainer/peers/site_peers.h"
#include "trainer/strategy/outer_sync/outer_sync.h"
#include "trainer/telemetry/recorder.h"

namespace farstep {

class OuterSite {
 public:
  // Joins the run with the values from which all sites start, and waits for all sites. `run` and
  // `site` are the JSON texts of OuterRunConfig and OuterSiteConfig. Sets up the process's log.
  // Throws ConfigError; DataError if a site starts from other values; PeerError if sites do not
  // come or the run goes on already.
  OuterSite(std::string_view run, std::string_view site, std::span<const float> start);
  // Without leave() before, the others count this site as lost.
  ~OuterSite();

  int64_t size() const { return std::ssize(sync_->outer().theta_global()); }
  // The members of the newest sync, or of the start.
  const View& view() const { return peers_->view(); }
  std::span<const float> momentum() const { return sync_->outer().momentum(); }
  // Goes on with the momentum of an earlier run, equally at all sites. Throws ConfigError after the
  // first sync.
  void set_momentum(std::span<const float> momentum);

  // Averages with the other sites what the inner steps made of the newest common values, and
  // replaces `values` by the next common ones. Waits for the other sites. Returns the record of
  // the last fragment, with the times of all. Returns nullopt if stop() was called. `values` are
  // unchanged unless a record is returned. Throws DivergenceError if a value is not finite,
  // PeerError, and InternalError if the sites' values differ. After an exception the site has left.
  std::optional<SyncRecord> sync(std::span<float> values, const outer_optimizer::Work& work);

  // Ends the wait of a sync, present or future, that not all sites have begun. Any thread may call
  // it.
  void stop() { stop_.request_stop(); }

  // Leaves the run: it is done here or, with a reason, has failed. A site that hosts the
  // coordinator waits until the others have left, at most join_seconds, or leave_seconds after a
  // failure. Later calls do nothing.
  void leave(const std::optional<std::string>& failure);

 private:
  // Exchanges all fragments; returns as sync() does.
  std::optional<SyncRecord> exchange(std::span<const float> values,
                                     const outer_optimizer::Work& work);
  void leave_as(Outcome outcome, const std::string& message);

  RealClock clock_;
  Recorder recorder_;
  std::stop_source stop_;
  std::unique_ptr<SitePeers> peers_;
  std::unique_ptr<OuterSync> sync_;
  int64_t rounds_done_ = 0;
  bool has_left_ = false;
};

}  // namespace farstep
