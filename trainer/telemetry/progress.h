// Progress on the console: a board with a bar for each site, and a single bar.
//
// On a terminal they are redrawn in place, at most ten times a second, and fit its width. Elsewhere
// they print one line for each site and round, as a log does. Not thread-safe.
#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/clock.h"
#include "trainer/telemetry/site_progress.h"

namespace farstep {

struct TerminalSize {
  std::size_t columns = 80, rows = 24;
};

// Returns the size of the terminal `out`; the default if it is not a terminal or has no size.
TerminalSize terminal_size(std::FILE* out);

// Returns a site's line in `columns`, not counting colours: name (padded to `name_width`), bar,
// round, step, loss, speed, activity and time left. Leaves out details that do not fit.
std::string board_line(const SiteProgress& site, std::size_t name_width, std::size_t columns);

class ProgressBoard {
 public:
  // `out` and `clock` must outlive the board.
  ProgressBoard(std::FILE* out, bool is_terminal, const Clock& clock,
                const std::vector<std::string>& sites);

  // Processes a record of one of the sites. Without a terminal, prints a line at the end of a round
  // and of the site's run. Throws InternalError for an unknown site.
  void update(const Record& record);
  // Redraws on a terminal, at most ten times a second.
  void draw();
  // Takes the board off the terminal until the next draw(), so that something else can be written.
  void clear();
  // Draws the last state.
  void finish();

 private:
  void redraw();

  std::FILE* const out_;
  const bool is_terminal_;
  const Clock& clock_;
  std::vector<SiteProgress> sites_;
  std::size_t name_width_ = 0;
  std::size_t drawn_lines_ = 0;
  double next_draw_seconds_;  // on the clock's steady scale
};

class ProgressBar {
 public:
  // `label` names the work. `out` and `clock` must outlive the bar.
  ProgressBar(std::FILE* out, bool is_terminal, const Clock& clock, std::string label);

  // On a terminal, shows that `fraction` (0 to 1) is done, with a few words. Draws at most ten
  // times a second.
  void show(double fraction, const std::string& words);
  // Replaces the bar by "label: words" at the end; without a terminal prints only that.
  void finish(const std::string& words);

 private:
  std::FILE* const out_;
  const bool is_terminal_;
  const Clock& clock_;
  const std::string label_;
  double next_draw_seconds_;
};

}  // namespace farstep
