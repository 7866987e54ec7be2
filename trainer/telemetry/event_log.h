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

// Reads a growing file, in pieces. Not thread-safe.
class EventFollower {
 public:
  // The file may not exist yet.
  explicit EventFollower(std::filesystem::path file) : file_(std::move(file)) {}

  // Returns the records completed since the last call. Throws DataError if a line is not a record,
  // or if the file became shorter than the part already read.
  std::vector<Record> poll();
  // Returns the next of these records only, of about a megabyte of the file; none: that is all.
  std::vector<Record> poll_some();
  // Passes over the lines that are complete, without looking into them. Throws DataError.
  void skip();
  // Describes an unfinished last line, as the last call saw it; empty if there is none.
  std::string note() const;

 private:
  // Returns at most `most` bytes of what was not read yet.
  std::string read_next(std::size_t most) const;

  std::filesystem::path file_;
  std::uintmax_t read_bytes_ = 0;  // of complete lines
  int64_t read_lines_ = 0;
  std::size_t unfinished_bytes_ = 0;
};

}  // namespace farstep
