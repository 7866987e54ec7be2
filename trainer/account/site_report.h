// The figures of one site from its event file, of which a resumed process may have abandoned a
// part.
//
// The figures include only records that without_abandoned() keeps. The newest records stay in
// memory, so that most resumes can take some of them back; the others are folded into figures. A
// resume that goes back further has the file read again. Not thread-safe.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "trainer/account/site_figures.h"
#include "trainer/telemetry/abandoned.h"

namespace farstep {

class SiteReport : public SiteFigures {
 public:
  // Some megabytes, and more than most runs have between two checkpoints.
  static constexpr std::size_t kMostRecent = 8192;

  // `file` has the records that will be added: all, in its order. Without one, all records stay in
  // memory; else at most `most_recent` (2 or more).
  explicit SiteReport(std::string name, std::filesystem::path file = {},
                      std::size_t most_recent = kMostRecent);

  // Counts the next record of the file. A `run` record takes back those before it that it abandons.
  // Takes constant time on average, but for a `run` record, which counts the recent ones anew and
  // may have the file read again. Throws DataError if it cannot be.
  void add(Record record);

  // Calls `visitor` with each record that counts, in the order of the file; reads the file again if
  // not all of them are in memory. Throws DataError if it cannot be read.
  void visit_records(const std::function<void(const Record&)>& visitor) const;

 private:
  // Records of the file by their numbers, from 0.
  struct Range {
    int64_t begin = 0, end = 0;
  };

  void drop_abandoned(const RunEvent& start);
  void keep_recent(std::size_t kept);
  void count_anew(const RunEvent& start);
  void append(Record record, int64_t number);
  void fold();
  void visit_file(const std::function<bool(const Record&, int64_t number)>& visitor) const;

  std::filesystem::path file_;
  std::size_t most_recent_;
  std::vector<Record> recent_;  // the newest that count
  SiteFigures folded_;          // of those before
  PastRecords past_;            // these too
  bool has_folded_ = false;
  std::vector<Range> kept_;  // all that count
  int64_t read_ = 0;         // how many were added
  RunSeconds run_seconds_;   // of all of them
};

}  // namespace farstep
