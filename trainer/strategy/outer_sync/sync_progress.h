// The progress of a site's syncs: a checkpoint's values of a strategy besides its tensors. Values;
// thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "outer_optimizer/sync_config.h"
#include "trainer/base/error.h"
#include "trainer/config/json_fields.h"
#include "trainer/strategy/outer_sync/delta_history.h"
#include "trainer/strategy/outer_sync/sync_record.h"
#include "wan/protocol/protocol.h"

namespace farstep {

// More syncs than any run has.
inline constexpr int64_t kMostSyncs = int64_t{1} << 53;

// Settings of the syncs that differ from the run's config after a retune.
struct SyncTuning {
  outer_optimizer::SyncConfig sync;
  std::vector<double> shares;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("sync", sync, "as the run's", kRequired);
    visit("shares", shares, "of the reduction, by site; empty: as the run has it", kRequired);
  }
};

// A checkpoint's state of an OuterSync.
struct OuterSyncState {
  std::optional<SyncTuning> tuning = {};
  bool has_residuals = false;
  std::vector<std::string> members = {};
  int64_t place = 0;
  std::vector<DeltaPast> past = {};

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("tuning", tuning, "how syncs are done; null: as the run's config says", kRequired);
    visit("has_residuals", has_residuals, "what the codec left out stands among the buffers",
          kRequired);
    visit("members", members, "the sites by whose partitions they stand there; empty: the run's");
    visit("place", place, "of the site among these", at_least(0));
    visit("past", past, "of its deltas, by fragment; empty: unknown");
  }
};

// Progress of syncs that end in the round in which they began.
struct SyncProgress {
  int64_t syncs_done = 0;
  int64_t fragments_applied = 0;
  std::vector<outer_optimizer::Work> work =
      {};  // by fragment: in theta_local, not yet in theta_global
  bool is_mixed = false;
  bool is_new = false;
  std::optional<wan::Contribution> sent = {};
  std::optional<SyncRecord> received = {};
  OuterSyncState sync = {};

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("syncs_done", syncs_done, "syncs of the run that count",
          required(in_range(0, kMostSyncs)));
    visit("fragments_applied", fragments_applied, "fragments of the present round that are applied",
          required(at_least(0)));
    visit("work", work, "what each fragment has to bring", kRequired);
    visit("is_mixed", is_mixed, "theta_local has had shares of its own mixed into it", kRequired);
    visit("is_new", is_new, "the site has joined, and its first round has not begun");
    visit("sent", sent, "what went with a delta that was sent and does not count; null: none was",
          kRequired);
    visit("received", received, "a sync that counts and is not applied; null: there is none");
    visit("sync", sync, "how syncs are done", kRequired);
  }
};

// Progress of syncs that end in the round after.
struct EagerProgress {
  int64_t syncs_done = 0;
  outer_optimizer::Work work = {};
  double coefficient = 1;
  int64_t sent_round = 0;
  std::optional<wan::Contribution> sent = {};
  std::optional<SyncRecord> received = {};
  OuterSyncState sync = {};

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("syncs_done", syncs_done, "syncs of the run that count",
          required(in_range(0, kMostSyncs)));
    visit("work", work, "what the model has to bring", kRequired);
    visit("coefficient", coefficient, "what the sent delta counts in this site's own steps",
          kRequired);
    visit("sent_round", sent_round, "round of the delta that was taken last; 0: none was",
          required(at_least(0)));
    visit("sent", sent, "what goes with that delta; null: theta_global has it", kRequired);
    visit("received", received, "its sync, where that counts; null: it is not over", kRequired);
    visit("sync", sync, "how syncs are done", kRequired);
  }
};

// Progress of a strategy whose every step is a sync.
struct StepProgress {
  int64_t syncs_done = 0;
  outer_optimizer::Work work = {};

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("syncs_done", syncs_done, "steps of the run", required(in_range(0, kMostSyncs)));
    visit("work", work, "steps of the present round", kRequired);
  }
};

// Reads a strategy's state as its state() wrote it. Throws DataError if it is malformed.
template <typename Progress>
Progress read_progress(const Json& state) {
  try {
    auto progress = read_json<Progress>(state, "strategy");
    if constexpr (requires { progress.received; }) {
      const auto& received = progress.received;
      if (received && received->members.size() != received->contributions.size()) {
        throw DataError(fmt::format("strategy.received: {} members and {} contributions",
                                    received->members.size(), received->contributions.size()));
      }
    }
    return progress;
  } catch (const ConfigError& error) {
    throw DataError(error.what());
  }
}

}  // namespace farstep
