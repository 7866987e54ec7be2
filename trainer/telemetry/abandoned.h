// Which records of a site still count after a resume: a resumed process goes on from its
// checkpoint, so what the process before did after that checkpoint was abandoned, and is done
// again.
//
// A `run` record with start_round r, start_step s and start_fragments f says: r rounds were done,
// and of the next one s steps and f fragments. It drops, of the records before it, the first one
// beyond that point and all later ones. Beyond it are:
//   - steps of round r+1 after step s, and of later rounds;
//   - syncs of round r+1 from fragment f on, and of later rounds;
//   - commits, links and evaluations of rounds after r;
//   - plans and spans of rounds after r, except those of round r+1 written before its step s and
// its sync of fragment f-1;
//   - sync changes of rounds after r+1;
//   - views of rounds after r, except those of round r+1 that are before the point as a span is.
// A `run` record with r = s = 0 begins a fresh run and drops everything.
//
// A site that comes back takes the state of rounds which it did not end itself. The round in which
// it was lost had no use of its work: of that round's plans, steps, spans and syncs the first one
// and all later records are dropped too.
//
// Values only; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "trainer/telemetry/event.h"

namespace farstep {

// Returns the records of one site's file without abandoned ones.
std::vector<Record> without_abandoned(std::vector<Record> records);

// Whether a process begins a fresh run, which leaves nothing of the one before.
bool begins_anew(const RunEvent& start);

// What a search must know of records that are not in memory any more. None of them is abandoned.
class PastRecords {
 public:
  // Adds the next record.
  void add(const Record& record);

 private:
  friend class KeptSearch;
  using Place = std::pair<int64_t, int64_t>;

  // Whether surely none of them is beyond the point of `start`.
  bool are_kept(const RunEvent& start) const;
  bool has_steps(const RunEvent& start) const;
  bool has_syncs(const RunEvent& start) const;

  Place step_{0, 0}, sync_{0, -1};  // the furthest: round, and step or fragment
  // The newest round of a plan, span or view; of a commit, link or evaluation; of a sync change.
  int64_t work_round_ = 0, done_round_ = 0, change_round_ = 0;
  int64_t ended_round_ = 0;  // by the last commit or view
  bool has_lost_ = false;    // work of a later round comes after it
};

// Finds how many of a site's records still count when a process begins with `start`.
class KeptSearch {
 public:
  // `past` are the records before those that will be added.
  explicit KeptSearch(const RunEvent& start, const PastRecords& past = {});

  // Adds the next record. None of them is abandoned yet.
  void add(const Record& record);
  // Whether a record beyond the point was added: neither it nor what comes after it counts.
  bool has_passed() const { return beyond_.has_value(); }
  // Returns how many of the added records count; nullopt: some of the past ones do not count
  // either, or that is not known. Of a fresh run 0, whatever was before.
  std::optional<std::size_t> kept() const;

 private:
  RunEvent start_;
  bool are_past_kept_, has_steps_, has_syncs_;
  int64_t ended_round_;
  bool is_past_lost_;
  std::size_t count_ = 0;
  std::optional<std::size_t> beyond_, lost_;  // the first record beyond the point, of a lost round
};

}  // namespace farstep
