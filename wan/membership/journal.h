// A coordinator's state on disk, from which it goes on after a crash. One process at a time has a
// journal. The first line has a checksum of the rest, so that damage is noticed.
//
// Not thread-safe.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

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

}  // namespace farstep::wan
