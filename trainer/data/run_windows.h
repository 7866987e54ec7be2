// Which windows the sites of a run have trained on: the pool of those that are next, and what sites
// have reserved of it in rounds whose syncs are not committed.
//
// A site reserves its range when its plan is made, and nobody knows then how much it will use: a
// round may end by a deadline, or lose the site. With the sync of the round all members know whose
// work is merged, and the rest of the ranges goes back to the pool. All members make the same calls
// from the same figures, so they have the same pool.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trainer/data/window_pool.h"

namespace farstep {

// More than a plan gives a site.
inline constexpr int64_t kMostReserved = 1'000'000'000;

// A site's sequences in a round, or in the newly planned rest of one.
struct Reservation {
  int64_t round = 1;
  std::string site;
  int64_t steps_before = 0;  // of the round, which have reservations of their own
  int64_t batch = 1;         // sequences of a step
  std::vector<SequenceRange> ranges;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("round", round, "in which the site trains on them", required(at_least(1)));
    visit("site", site, "name of the site", kRequired);
    visit("steps_before", steps_before, "of the round, before these sequences",
          required(in_range(0, kMostReserved)));
    visit("batch", batch, "sequences of a step", required(in_range(1, kMostReserved)));
    visit("ranges", ranges, "the sequences, in the order of the steps", kRequired);
  }
  bool operator==(const Reservation&) const = default;
};

// The same as plain values, for checkpoints and newcomers.
struct RunWindowsState {
  int64_t run_sequences = 0;
  std::vector<SequenceRange> returned_sequences = {};
  std::vector<Reservation> reserved_sequences = {};

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("run_sequences", run_sequences, "the sequence from which on no site has reserved any",
          required(in_range(0, kMostSequences)));
    visit("returned_sequences", returned_sequences,
          "sequences before it that nobody has trained on; they are next");
    visit("reserved_sequences", reserved_sequences,
          "sequences of rounds whose syncs are not committed, by site");
  }
};

class RunWindows {
 public:
  RunWindows() = default;
  // Restores a state. Throws DataError if it has a sequence twice, or one that nobody has reserved.
  explicit RunWindows(const RunWindowsState& state);
  RunWindowsState state() const;

  // The sequences of the next reservations.
  const WindowPool& pool() const { return pool_; }

  // Reserves the next `count` sequences for a site, from its step `steps_before` of the round on.
  void reserve(int64_t round, const std::string& site, int64_t steps_before, int64_t batch,
               int64_t count);
  // Returns how many sequences the site has reserved in the round so far.
  int64_t reserved(int64_t round, const std::string& site) const;
  // Ends the reservations of `round`. `steps` are those of the round that are merged, by site. The
  // sequences of other steps, and of sites that are not named, go back. Forgets older rounds.
  void settle(int64_t round, const std::map<std::string, int64_t>& steps);
  // Gives back all reservations of a round that begins anew.
  void withdraw(int64_t round);

  bool operator==(const RunWindows&) const = default;

 private:
  WindowPool pool_;
  std::vector<Reservation> reserved_;
};

}  // namespace farstep
