// The strategy: how the sites' replicas stay together. It decides what crosses the WAN, and when.
//
// A round calls begin(), then after_step() after each inner step, then end(). Between these calls
// the site trains on. The training thread calls all methods.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "outer_optimizer/exchange/exchange.h"
#include "outer_optimizer/schedule/partition.h"
#include "outer_optimizer/sync_config.h"
#include "trainer/base/checksum.h"
#include "trainer/base/memory/named_buffers.h"
#include "trainer/base/view.h"
#include "trainer/config/json_fields.h"
#include "trainer/reduction/site_reduction.h"
#include "trainer/strategy/outer_sync/sync_record.h"
#include "trainer/strategy/planned_work.h"
#include "wan/protocol/protocol.h"

namespace farstep {

// theta_local on any device, accessed by ranges of the flat vector.
class LocalTheta {
 public:
  virtual ~LocalTheta() = default;
  // Returns the range's present values in host memory, which is writable and valid until the next
  // call. Written values reach theta_local by push() at the latest.
  virtual std::span<float> pull(const outer_optimizer::Range& range) = 0;
  // The same in two calls, so that training can go on: finish_pull() waits for the values as they
  // were at start_pull(). Any thread may call finish_pull(). Only one pull at a time.
  virtual void start_pull(const outer_optimizer::Range& range) = 0;
  virtual std::span<float> finish_pull() = 0;
  // Writes `values` to the range. They may be the memory that pull() returned.
  virtual void push(const outer_optimizer::Range& range, std::span<const float> values) = 0;
};

// The syncs that one call of a strategy applied.
struct Synced {
  std::vector<SyncRecord> applied;  // in the order of application
  bool is_stopped = false;          // a stop was requested before all due syncs had begun
  // This site's delta was left out, and theta_local is theta_global now: its moments must be fresh.
  bool begins_anew = false;
  // The time that the last step's own exchanges, of gradients and values, did not hide.
  double exposed_seconds = 0;
};

// A round that begins, or continues after a resume. All references stay valid until the round has
// ended and no sync is under way.
struct RoundStart {
  int64_t round = 1;
  View view;
  std::vector<PlannedWork> planned;  // by place in the view
  int64_t tokens_per_step = 0;       // of this site
  // The round's first steps measure the sites. Nothing is synced until begin() is called once more,
  // with the plan for the rest of the round.
  bool is_measuring = false;
  outer_optimizer::Exchanges* exchanges = nullptr;
  LocalTheta* theta = nullptr;
  // The memory in which Strategy::gradients() sums a step's gradient: flat, of the host.
  std::span<float> gradients = {};
};

class Strategy {
 public:
  virtual ~Strategy() = default;

  // The state that all replicas share, and the outer optimizer's momentum. In host memory, flat,
  // fp32. Not to be accessed while a sync is under way.
  virtual std::span<float> theta_global() = 0;
  virtual std::span<float> outer_momentum() = 0;
  // Returns the checksum that theta_global will have, if it lacks a committed sync that is received
  // and not applied; else nullopt.
  virtual std::optional<uint64_t> pending_checksum() { return std::nullopt; }
  // Returns the checksum of theta_global once it has all committed syncs. It is equal at all sites
  // that continue together, also if one of them has still to apply what another has applied.
  uint64_t committed_checksum() {
    const auto pending = pending_checksum();
    return pending ? *pending : checksum(std::as_bytes(theta_global()));
  }

  // Changes how the model is synced from the next round on. Exchange and lanes of `sync` must be
  // the run's. The member at place i reduces a part in proportion to shares[i]; empty shares mean
  // those of the run's config. Called between two rounds, with the same arguments at every site.
  // Residuals are kept as long as a codec can still send them.
  virtual void retune(const outer_optimizer::SyncConfig& sync, std::span<const double> shares) = 0;
  // Returns the present settings of the syncs.
  virtual const outer_optimizer::SyncConfig& sync_config() const = 0;

  // Each of the three calls of a round sends and applies the syncs that are due. `so_far` is the
  // site's round; its link figures and step times go to the other sites unchanged. If members of
  // the view are lost, the sync is done among the others. If a sync is stopped or throws, it has
  // changed no state. It can be repeated from there or from a checkpoint.
  // Throws PeerError; InternalError if hashes or plans differ; DivergenceError if a delta is not
  // finite.
  //
  // begin(): the round begins, or continues after a resume with the steps of `so_far`.
  virtual Synced begin(const RoundStart& start, const heterogeneity::RoundTiming& so_far,
                       const std::stop_token& stop) = 0;
  // Returns the reduction that sums a step's gradients with other sites' during backward; null if
  // the strategy does not change gradients.
  virtual SiteReduction* gradients() { return nullptr; }
  // after_step(): one more inner step is done, with this learning rate.
  virtual Synced after_step(double learning_rate, const heterogeneity::RoundTiming& so_far,
                            const std::stop_token& stop) = 0;
  // end(): the round's last step is done. Sends and applies all syncs that are left.
  virtual Synced end(const heterogeneity::RoundTiming& so_far, const std::stop_token& stop) = 0;

  // Takes part in a round without inner steps, as a site that joins the run in it: brings no work
  // to its syncs and applies their means. theta_local equals theta_global then. `start` is as for
  // begin(); its view may have this site beside the members that the round is planned for. Throws
  // as begin() does, and PeerError if the round's first sync has begun without this site.
  virtual Synced attend(const RoundStart& start, const std::stop_token& stop) = 0;

  // Leaves no sync under way. Called before the site ends. Gives up a sync that still waits for
  // sites. Waits for one that all sites have begun, so that it counts at all or at none; its mean
  // is applied when that is due. Throws the sync's failure.
  virtual void settle() = 0;

  // Returns how many syncs of the present round are applied; 0 between two rounds.
  virtual int64_t syncs_of_round() const = 0;
  // Returns whether no sync has begun in the present round. Then theta_global, momentum and state()
  // are still what the replicas shared at its start, but for this site's own work.
  virtual bool is_before_syncs() const = 0;
  // Returns how many syncs of the run are committed; equal at all sites that continue together.
  virtual int64_t syncs_done() const = 0;
  // Returns whether theta_local equals theta_global, as between two rounds without fragments and
  // mixing.
  virtual bool local_is_global() const = 0;
  // The state that a checkpoint saves besides theta_global and momentum; no sync may be under way.
  // own_buffers() has the same buffers after restore() as when the state was saved. restore() also
  // restores the last retune(). It throws DataError if `state` is not of such a run.
  virtual Json state() const = 0;
  virtual void restore(const Json& state) = 0;
  virtual NamedBuffers own_buffers() = 0;
  // After restore() and before begin(): lets the round begin anew, for other members than it had.
  // Its inner steps and deltas are dropped, the syncs that were applied stay. Writes the weights
  // from which this site trains then.
  virtual void drop_steps(std::span<float> theta_local) = 0;
  // Between two rounds, after theta_global and momentum were replaced at all sites alike: drops all
  // that this site has trained since, its residuals, and of a delta that is still to be sent the
  // values. Writes the weights from which this site trains then, which are theta_global.
  virtual void begin_from_global(std::span<float> theta_local) = 0;
};

}  // namespace farstep
