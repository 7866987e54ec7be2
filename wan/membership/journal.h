// A coordinator's state on disk, from which it goes on after a crash. One process at a time has a
// journal. The first line has a checksum of the rest, so that damage is noticed.
//
// Not thread-safe.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "trainer/base/clock.h"
#include "trainer/base/error.h"
#include "wan/admission/served_run.h"
#include "wan/roster/roster_state.h"

namespace farstep::wan {

// Returns the content of a journal of `run`.
std::string journal_text(const RosterState& state, const ServedRun& run);
// Returns the content of a journal that has this text after its first line.
std::string checked_journal(std::string_view body);

// The content of a journal is damaged; the message names the file.
class DamagedJournal : public DataError {
 public:
  using DataError::DataError;
};

// Returns the state in the content of `file`. Throws DamagedJournal, or a DataError that names the
// file and the way out if it is no journal or belongs to another run.
RosterState journal_state(std::string_view text, const ServedRun& run, const std::string& file);

class Journal {
 public:
  // Takes the journal of `run` at `file`, which need not exist. Sets a damaged one aside, with a
  // warning, and begins another. Throws PeerError if another process has it, and DataError if it is
  // refused or its folder cannot be written.
  Journal(std::filesystem::path file, ServedRun run);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // Returns the state to start with: that of the file in a new term, or a fresh one.
  const RosterState& start() const { return start_; }
  // Returns when `state` is on disk. Writes nothing if the file has this state already. Throws
  // DataError.
  void write(const RosterState& state);
  // Removes the file, durably: nothing of the run is left to go on with. Throws DataError.
  void remove();

 private:
  RosterState read();

  const std::filesystem::path file_;
  const ServedRun run_;
  int lock_ = -1;  // descriptor of the lock file beside it
  RosterState start_;
  std::string written_;  // the content of the file
};

// The journal of a coordinator that serves on when the disk takes no more: the run is worth more
// than its journal. Then there is none, as an old one is worse: a coordinator that goes on from it
// does not know what its sites know. Logs a line when that begins, and one when no write has failed
// for a minute, however often a nearly full disk takes a write in between.
//
// Not thread-safe.
class KeptJournal {
 public:
  // Takes the journal as Journal does. `clock` must outlive it.
  KeptJournal(std::filesystem::path file, ServedRun run, const Clock& clock)
      : journal_(std::move(file), std::move(run)), clock_(clock) {}

  // Returns the state to start with.
  const RosterState& start() const { return journal_.start(); }
  // Writes the first state. Throws DataError: a journal that cannot be written at the start never
  // protects the run.
  void begin(const RosterState& state) { journal_.write(state); }
  // Writes the state. To be called at least every few seconds, also with the same state.
  void save(const RosterState& state);
  // Removes the file, of a run with which nothing is to go on.
  void remove() { remove_and_tell(true); }

 private:
  void remove_and_tell(bool tells_fault);

  Journal journal_;
  const Clock& clock_;
  std::optional<double> failed_seconds_;  // when a write failed last; nothing: all is well
};

}  // namespace farstep::wan
