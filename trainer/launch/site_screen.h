// What `farstep train` shows of its own site: a bar on a terminal, and a line a round, with loss,
// speed, waiting time and time left; at the end, where the model is.
//
// It follows the site's event file on a thread of its own, so that the training thread has nothing
// to do with it.
#pragma once

#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "trainer/base/clock.h"
#include "trainer/telemetry/event_log.h"
#include "trainer/telemetry/idle.h"
#include "trainer/telemetry/progress.h"
#include "trainer/telemetry/site_progress.h"

namespace farstep {

// What the screen tells of. It grows with the rounds, by the time of each, and with nothing else:
// the training process has it for as long as it runs.
struct ShownSite {
  explicit ShownSite(std::string name) : progress(std::move(name)) {}

  // Counts the next record of this process.
  void add(const Record& record);

  SiteProgress progress;
  TimeAccount account;
  std::optional<CheckpointEvent> checkpoint;  // the last one
  bool has_records = false;
};

// Returns the line about a record that the site has just counted; empty if it has none.
std::string news_text(const ShownSite& site, const Record& record);

class SiteScreen {
 public:
  // Shows what comes into FOLDER/events.jsonl from now on. With `is_terminal`, the bar is drawn on
  // `out`, below the lines of the log. `clock` must outlive the screen.
  SiteScreen(const std::filesystem::path& folder, const std::string& site, std::FILE* out,
             bool is_terminal, const Clock& clock);
  // Shows the rest, and leaves the bar as it is at the end.
  ~SiteScreen();
  SiteScreen(const SiteScreen&) = delete;
  SiteScreen& operator=(const SiteScreen&) = delete;

 private:
  void run();
  void look();

  const bool is_terminal_;
  EventFollower events_;  // used by the thread only, as the next two
  ShownSite site_;
  bool has_failed_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  ProgressBoard board_;  // guarded by mutex_, as the next one
  bool is_ending_ = false;
  std::thread thread_;  // the last member: it uses all others
};

}  // namespace farstep
