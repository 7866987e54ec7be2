// Reads the event files of a run's folder, also while they grow, and counts them. A file that
// cannot be read is told, and takes nothing from the figures of the other sites.
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

// Returns FOLDER/*/events.jsonl, or events.jsonl in the folder of one site, sorted by name; then,
// of sites that are not among them, the copies in the `all_sites` of these folders, which that of
// the coordinator's site has. Throws DataError if a folder cannot be read.
std::vector<std::filesystem::path> find_event_files(const std::filesystem::path& folder);

class RunFollower {
 public:
  // The folders of one run, mostly one. They may be without files yet, or absent.
  explicit RunFollower(std::vector<std::filesystem::path> folders) : folders_(std::move(folders)) {}

  // Reads what has been written since the last call, also files that are new. Returns whether there
  // was anything. A file is unreadable from the call on in which it is no event file, became
  // shorter, or is not of the run of the newest record: then nothing of its site is in the report.
  bool poll();
  // Lets the next poll() read the unreadable files anew, from their begin.
  void retry();

  // Returns the run so far; null if nothing was read yet.
  const RunReport* report() const { return report_.sites.empty() ? nullptr : &report_; }
  // Returns what cannot be read, as the last poll() found it; report() has the same.
  const std::vector<UnreadableFile>& unreadable() const { return report_.unreadable; }
  // Hands it out. Nothing can be read afterwards.
  RunReport take_report() { return std::move(report_); }

 private:
  struct File {
    std::filesystem::path path;
    EventFollower events;
    std::string site = {};    // empty until the first record
    std::string reason = {};  // why it is unreadable; empty: it is not
    bool has_news = false;    // in this poll()
  };

  // Returns the folders that cannot be read.
  std::vector<UnreadableFile> find_new_files();
  void read(File& file);
  void add(File& file, Record record);
  SiteReport& site_of(File& file, const Record& record);
  void leave_out(File& file, const std::string& reason);
  void leave_out_other_runs();

  const std::vector<std::filesystem::path> folders_;
  std::vector<File> files_;
  std::vector<std::string> notes_;  // on unfinished lines
  RunReport report_;
};

}  // namespace farstep
