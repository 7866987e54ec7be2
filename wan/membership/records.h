// The coordinator's copy of its sites' records, so that one place has those of all.
//
// A site's record file only grows, in whole lines. With each answer to a heartbeat the coordinator
// says how much of it it has, and the site sends a piece of what follows. So a copy that was
// interrupted, on whatever side, goes on where it was. Not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "wan/protocol/site_messages.h"

namespace farstep::wan {

// How much the coordinator has of a site's file: its bytes, and a checksum of its first line, by
// which another file of that name is known; -1: it keeps no records.
struct RecordsState {
  int64_t bytes = -1;
  std::string head = {};
};

// A site's own file.
class RecordsReader {
 public:
  // The file may be absent yet.
  explicit RecordsReader(std::filesystem::path file) : file_(std::move(file)) {}

  // Returns the next whole lines after what the coordinator has, at most kMostRecordsBytes, or one
  // line of up to kMostRecordBytes; nullopt if there are none, if the file cannot be read, or if
  // the coordinator keeps no records. A longer line ends the copy, and the log says so once.
  std::optional<RecordsMessage> next(const RecordsState& state);
  // Returns the checksum of its first line; empty if it has none yet.
  const std::string& head() const { return head_; }

 private:
  std::filesystem::path file_;
  std::string head_;  // empty until the file has a line
  bool has_warned_ = false;
};

// The coordinator's folder, with FOLDER/SITE/events.jsonl of each site.
class RecordsFolder {
 public:
  // An empty path keeps nothing.
  explicit RecordsFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Returns how much of a site's file is stored.
  RecordsState state(const std::string& site);
  // Appends the new part of a piece. A piece that begins beyond the stored bytes is dropped: the
  // site sends it again. If the file cannot be written, or if RecordsReader cannot have made the
  // piece, nothing more is stored of the site, and a line in the log says so.
  void take(const std::string& site, const RecordsMessage& message);

 private:
  struct Copy {
    std::filesystem::path file;
    RecordsState state;
  };

  // Returns null if nothing is kept of the site.
  Copy* copy_of(const std::string& site);
  // Appends, or begins the file anew. Returns why the copy has to end; empty: it goes on.
  static std::string write(Copy& copy, const RecordsMessage& message);

  const std::filesystem::path folder_;
  std::map<std::string, Copy> copies_;
};

}  // namespace farstep::wan
