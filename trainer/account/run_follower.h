// Reads the event files of a run's folder, also while they grow, and counts them.
//
// Not thread-safe.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/account/run_report.h"
#include "trainer/telemetry/event_log.h"

namespace farstep {

// Returns FOLDER/*/events.jsonl, or events.jsonl in the folder of one site, sorted by name. Throws
// DataError if the folder cannot be read.
std::vector<std::filesystem::path> find_event_files(const std::filesystem::path& folder);

class RunFollower {
 public:
  // The folders of one run, mostly one. They may be without files yet, or absent.
  explicit RunFollower(std::vector<std::filesystem::path> folders) : folders_(std::move(folders)) {}

  // Reads what has been written since the last call, also files that are new. Returns whether there
  // was anything. Throws DataError if a file is no event file, became shorter, or does not belong
  // to the run of the others. Nothing can be read after an exception.
  bool poll();

  // Returns the run so far; null if nothing was read yet.
  const RunReport* report() const { return report_.sites.empty() ? nullptr : &report_; }
  // Hands it out. Nothing can be read afterwards.
  RunReport take_report() { return std::move(report_); }

 private:
  struct File {
    std::filesystem::path path;
    EventFollower events;
    std::string site;  // empty until the first record
  };

  void find_new_files();
  void add(File& file, Record record);
  SiteReport& site_of(File& file, const Record& record);

  const std::vector<std::filesystem::path> folders_;
  std::vector<File> files_;
  std::vector<std::string> notes_;  // on unfinished lines
  RunReport report_;
};

}  // namespace farstep
