// How the replicas of the sites stay together: the one place that decides what crosses the WAN, and
// when.
//
// The training loop owns theta_local and calls the strategy between its inner steps. All methods
// are called by the training thread.
#pragma once

#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "outer_optimizer/schedule/partition.h"
#include "trainer/base/named_buffers.h"
#include "trainer/config/json_fields.h"
#include "trainer/config/run_config.h"
#include "wan/membership/protocol.h"

namespace farstep {

// theta_local, wherever it lives, range by range of the flat vector.
class LocalTheta {
 public:
  virtual ~LocalTheta() = default;
  // The range's values as they are now, in host memory that may be written and holds until the next
  // call; what is written there reaches theta_local by push() at the latest.
  virtual std::span<float> pull(const Range& range) = 0;
  // The same in two steps, so that training can go on: the values are those of start_pull(), and
  // finish_pull(), which may be another thread's, waits for them. One at a time.
  virtual void start_pull(const Range& range) = 0;
  virtual std::span<float> finish_pull() = 0;
  // Makes `values` the range's; they may be those that pull() gave.
  virtual void push(const Range& range, std::span<const float> values) = 0;
};

// What a finished sync tells.
struct SyncRecord {
  SyncId id;
  int64_t generation = 0;
  double averaging_weight = 0;  // of this site's delta
  std::string theta_hash;  // that the sites voted on: after a round's last fragment theta_global's
  // From the delta's being taken: until all sites had theirs, and from then until the commit.
  double wait_seconds = 0, wan_seconds = 0;
  // The parts of these that no training hid.
  double exposed_wait_seconds = 0, exposed_wan_seconds = 0;
  std::vector<Contribution> contributions;  // of all sites, in order of site ids

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("round", id.round, "the sync's round", kRequired);
    visit("fragment", id.fragment, "its fragment", kRequired);
    visit("generation", generation, "of the membership", kRequired);
    visit("averaging_weight", averaging_weight, "of this site's delta", kRequired);
    visit("theta_hash", theta_hash, "that the sites voted on", kRequired);
    visit("wait_seconds", wait_seconds, "until all sites had their delta", kRequired);
    visit("wan_seconds", wan_seconds, "from then to the commit", kRequired);
    visit("exposed_wait_seconds", exposed_wait_seconds, "what no training hid", kRequired);
    visit("exposed_wan_seconds", exposed_wan_seconds, "what no training hid", kRequired);
    visit("contributions", contributions, "of all sites", kRequired);
  }
};

// What became due at a point of a round.
struct Synced {
  std::vector<SyncRecord> applied;  // in order
  bool is_stopped = false;          // a stop was asked for before all that was due could begin
};

class Strategy {
 public:
  virtual ~Strategy() = default;

  // The state that all replicas share, and the outer optimizer's own; host memory, flat, fp32. Not
  // to be touched while a sync is under way.
  virtual std::span<float> theta_global() = 0;
  virtual std::span<float> outer_momentum() = 0;

  // From the next round on the model is synced as `sync` says, which has the run's exchange, lanes
  // and eager; site i adds up a part in proportion to shares[i], empty: as the run has it. Called
  // between two rounds, with the same at every site. What codecs have left out so far is kept while
  // it has a way to travel.
  virtual void retune(const SyncConfig& sync, std::span<const double> shares) = 0;
  // How the model is synced now.
  virtual const SyncConfig& sync_config() const = 0;

  // A round begins, or goes on after a resume, in which the site plans to do `local_steps` steps.
  virtual void begin_round(int64_t round, int64_t local_steps) = 0;
  // An inner step on `tokens` tokens is done.
  virtual void count_step(int64_t tokens) = 0;

  // Sends and applies what is due after the round's steps so far, of which `so_far` tells; with
  // `round_ends`, all that is left of the round. A sync that throws (PeerError; InternalError if
  // the sites' hashes or a delta are wrong) or is stopped has changed nothing, and can be done
  // again from here or from a checkpoint. `theta` is to stay until no sync is under way.
  virtual Synced sync(const Contribution& so_far, bool round_ends, LocalTheta& theta,
                      const std::stop_token& stop) = 0;

  // Called when the site would end: gives up a sync that still waits for sites, so that none is
  // under way. False if one has begun at all sites and has not failed: sync() is to apply it first.
  // Throws what a sync under way has failed with.
  virtual bool try_give_up() = 0;

  // Fragments of the present round that are applied; 0 between two rounds.
  virtual int64_t fragments_applied() const = 0;
  // Syncs of the run that count: the same number at all sites that go on together.
  virtual int64_t syncs_done() const = 0;
  // Whether theta_local is theta_global, as between two rounds without fragments and mixing.
  virtual bool local_is_global() const = 0;
  // What a resumed site needs besides theta_global and momentum, while no sync is under way: state,
  // and buffers, which are there after restore() of the state. restore() takes over what
  // the strategy was retuned to, and throws DataError if the state is not of such a run.
  virtual Json state() const = 0;
  virtual void restore(const Json& state) = 0;
  virtual NamedBuffers own_buffers() = 0;
};

}  // namespace farstep
