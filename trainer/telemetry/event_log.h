// Reads event files, complete or while they grow.
//
// A last line without its newline is unfinished: a running site will complete it, a killed one left
// it. Any other line that is not a record is a DataError with file and line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trainer/telemetry/event.h"

namespace farstep {

struct EventLog {
  std::vector<Record> records;
  std::string note;  // describes an unfinished last line; empty if there is none
};

// Returns all records of the file. Throws DataError.
EventLog read_event_log(const std::filesystem::path& file);

// Returns the records of one site's file without abandoned ones. A resumed process continues from
// its checkpoint, so the work that the process before did after that checkpoint was abandoned and
// is done again.
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
std::vector<Record> without_abandoned(std::vector<Record> records);

// Returns how many of these records, of which none is abandoned, still count when a process begins
// with `start`: the others are beyond its point.
std::size_t kept_before(const std::vector<Record>& records, const RunEvent& start);

// Reads a growing file. Not thread-safe.
class EventFollower {
 public:
  // The file may not exist yet.
  explicit EventFollower(std::filesystem::path file) : file_(std::move(file)) {}

  // Returns the records completed since the last call. Throws DataError if a line is not a record,
  // or if the file became shorter than the part already read.
  std::vector<Record> poll();
  // Describes an unfinished last line, as the last call saw it; empty if there is none.
  std::string note() const;

 private:
  std::filesystem::path file_;
  std::uintmax_t read_bytes_ = 0;  // of complete lines
  int64_t read_lines_ = 0;
  std::size_t unfinished_bytes_ = 0;
};

}  // namespace farstep
