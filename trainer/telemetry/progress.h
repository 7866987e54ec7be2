// Progress on the console: a board with a bar a site, and a single bar.
//
// On a terminal they are redrawn in place, ten times a second at most, and fit its width; anywhere
// else they print plain lines, a site and round each, that read well in a log. Not thread-safe.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "trainer/base/clock.h"
#include "trainer/telemetry/site_progress.h"

namespace farstep {

struct TerminalSize {
  std::size_t columns = 80, rows = 24;
};

// The size of the terminal that `out` is; the default if it is none or does not tell.
TerminalSize terminal_size(std::FILE* out);

// A site's line in `columns`, colours not counted: name (padded to `name_width`), bar, round, step,
// loss, speed, activity and time left; details that do not fit are left out.
std::string board_line(const SiteProgress& site, std::size_t name_width, std::size_t columns);

class ProgressBoard {
 public:
  // `out` and `clock` must outlive the board.
  ProgressBoard(std::FILE* out, bool is_terminal, const Clock& clock,
                const std::vector<std::string>& sites);

  // Takes in a record of one of the sites; off a terminal, prints a line when a round is over or
  // the site ends. Throws InternalError if the site is none of them.
  void update(const Record& record);
  // Redraws on a terminal, unless that was done less than a tenth of a second ago.
  void draw();
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
  // `label` says what goes on. `out` and `clock` must outlive the bar.
  ProgressBar(std::FILE* out, bool is_terminal, const Clock& clock, std::string label);

  // Shows on a terminal that `fraction` (0 to 1) is done, with a few words, unless the bar was
  // drawn less than a tenth of a second ago.
  void show(double fraction, const std::string& words);
  // Replaces the bar with "label: words" for good; prints just that off a terminal.
  void finish(const std::string& words);

 private:
  std::FILE* const out_;
  const bool is_terminal_;
  const Clock& clock_;
  const std::string label_;
  double next_draw_seconds_;
};

}  // namespace farstep
