// Charts of the report: curves of loss, learning rate and the like, and idle time by site and
// cause. They are as wide as their place. Pure functions; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "trainer/account/membership.h"
#include "trainer/report/report.h"

namespace farstep {

// What a colour means: its class, and words.
struct LegendEntry {
  std::string css_class, label;
};

// Return what the colours of timeline_chart() and of idle_chart() are: only kinds that occur, and
// of the latter no serving, which is no idle time.
std::vector<LegendEntry> timeline_legend(const RunReport& report);
std::vector<LegendEntry> idle_legend(const RunReport& report);

// Returns what the lines of loss_chart() are.
std::vector<LegendEntry> loss_legend(const RunReport& report);

// Draws loss against rounds as an <svg> element. Each site has a thin line (class "site-0" to
// "site-7", or "any-site" for all of more sites; averaged if there are more steps than pixels). The
// validation loss has class "validation".
std::string loss_chart(const RunReport& report);

struct TitledChart {
  std::string title, svg;
};
// Draws learning rate and gradient norm of the sites' steps in the same form; none of a figure that
// no step has.
std::vector<TitledChart> step_charts(const RunReport& report);

// Draws the validation's accuracy against rounds, in percent, as an <svg> element of the same form.
std::string accuracy_chart(const RunReport& report);

// Draws a bar for each site as a <div> element of rows: the share of its time that each cause took,
// as in the idle table. Classes are the names of the causes.
std::string idle_chart(const RunReport& report);

// Draws a row for each site of a membership that has changed, as a <div> element: the rounds in
// which it took part.
std::string presence_chart(const Membership& membership);

}  // namespace farstep
