// Reading event files: whole, or while they grow.
//
// A last line without its newline is unfinished: a living site will finish it, a dead one left it.
// Anything else that is not a record is a DataError with file and line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trainer/telemetry/event.h"

namespace farstep {

struct EventLog {
  std::vector<Record> records;
  std::string note;  // what was left out of a dead site's file; empty if it is whole
};

// All records of the file. Throws DataError.
EventLog read_event_log(const std::filesystem::path& file);

// The records that count, of one site's file: a resumed process goes back to its checkpoint, so
// what the process before had done beyond that point was abandoned and is done again.
//
// A `run` record with start_round r, start_step s and start_fragments f drops, of the records
// before it, the first that lies beyond (r rounds done, s steps done and f fragments applied of the
// next) and all that follow. Beyond lie: steps of round r+1 after s, and of later rounds; syncs of
// round r+1 of fragments from f on, and of later rounds; commits and evaluations of rounds after r;
// plans and spans of rounds after r, except those of round r+1 written before its step s and its
// sync of fragment f-1. A `run` record with r = s = 0 is a fresh run and drops everything.
std::vector<Record> without_abandoned(std::vector<Record> records);

// Reads a growing file. Not thread-safe.
class EventFollower {
 public:
  // The file need not exist yet.
  explicit EventFollower(std::filesystem::path file) : file_(std::move(file)) {}

  // The records that were completed since the last call. Throws DataError if a line is no record,
  // or if the file became shorter than what was read of it.
  std::vector<Record> poll();

 private:
  const std::filesystem::path file_;
  std::uintmax_t read_bytes_ = 0;  // of complete lines
  int64_t read_lines_ = 0;
};

}  // namespace farstep
