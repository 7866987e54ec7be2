// The figures of a run, from those of its sites: losses by round, sums, who is missing.
//
// A RunReport is a value whose sites count their own records. settle() makes the figures of the run
// from them. Not thread-safe.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trainer/account/site_report.h"

namespace farstep {

// A file, or a folder of them, that counts in no figure.
struct UnreadableFile {
  std::filesystem::path path;
  std::string site;    // whose it is; empty: of a folder that cannot be read
  std::string reason;  // names the path

  bool operator==(const UnreadableFile&) const = default;
};

struct RunReport {
  std::string run;
  int64_t rounds_done = 0;        // the most that any site has committed
  Names site_names;               // of all sites, in order of their ids
  std::vector<SiteReport> sites;  // those with records here, in the same order
  std::vector<UnreadableFile> unreadable;
  std::vector<std::string> notes;  // unreadable files, missing sites and unfinished lines
  // By round. Training loss: mean over the tokens of all sites. Validation loss: over the shares of
  // the members of that time, in rounds for which every share is present.
  std::map<int64_t, double> train_losses, validation_losses;
  // The share of the validation's targets that the model names right; in the same rounds, if it
  // counts them.
  std::map<int64_t, double> validation_accuracies;
  std::map<int64_t, double> noise_scales;  // by round in which it is known; equal at all sites

  // Puts the sites into the order of the run, and makes all other members from them and from
  // `unreadable`; `file_notes` come first among the notes. Takes time in proportion to the rounds,
  // not to the steps. There must be a site, and all must be of one run.
  void settle(const std::vector<std::string>& file_notes = {});

  // Returns the newest record of a process that started: a resume may have changed settings.
  const RunEvent& newest_run() const;
  // Returns what the counts called tokens count: "tokens" or "images".
  const std::string& unit() const { return sites.front().run.unit; }
  // Returns the last validation loss, or without validation the last round's training loss.
  std::optional<double> final_loss() const;
  std::optional<double> final_accuracy() const;
  int64_t wan_bytes_sent() const;
  // Returns the time of all sites together.
  TimeUse total_time() const;
  // Returns the speed of the whole run: the sites' tokens a second, added up.
  double tokens_per_second() const;
};

}  // namespace farstep
