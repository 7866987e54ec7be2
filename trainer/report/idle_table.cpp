#include "trainer/report/idle_table.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "trainer/telemetry/figure_text.h"

namespace farstep {

namespace {

// The rounds that a mean is over. At least 1: a run that ended in its first round is reported too.
double rounds_of(const SiteReport& site) {
  return static_cast<double>(std::max<int64_t>(site.rounds_worked, 1));
}

// Returns the number of decimals for a table with this largest value: enough for a thousandth of
// it, which the share of a row shows.
int digits_for(double largest) {
  return largest >= 100 ? 1 : largest >= 1 ? 2 : 3;
}

// Adds rows to the idle table: the mean of one figure a round for each site, and their sum.
class IdleRows {
 public:
  IdleRows(const RunReport& report, Table& table) : report_(report), table_(table) {
    for (const auto& site : report.sites) {
      all_seconds_ +=
          (site.time().total.total_seconds() + site.time().lost_seconds) / rounds_of(site);
    }
    digits_ = digits_for(all_seconds_ / static_cast<double>(report.sites.size()));
  }

  void add(std::string_view label, const std::function<double(const SiteTime&)>& seconds,
           bool is_sum = false, bool has_share = true) {
    Table::Row row{{std::string(label)}, is_sum};
    double total = 0;
    for (const auto& site : report_.sites) {
      const double mean = seconds(site.time()) / rounds_of(site);
      row.cells.push_back(text(mean));
      total += mean;
    }
    row.cells.push_back(text(total));
    const bool is_known = has_share && all_seconds_ > 0;
    row.cells.push_back(is_known    ? percent_text(without_rounding(total) / all_seconds_)
                        : has_share ? "-"
                                    : "");
    table_.rows.push_back(std::move(row));
  }

 private:
  // Avoids "-0.0" for a sum that differs from 0 only by rounding. Half of the last digit that
  // digits_for() ever shows.
  static double without_rounding(double seconds) { return std::abs(seconds) < 5e-4 ? 0 : seconds; }
  std::string text(double seconds) const {
    return fmt::format("{:.{}f}", without_rounding(seconds), digits_);
  }

  const RunReport& report_;
  Table& table_;
  double all_seconds_ = 0;
  int digits_;
};

// A cause that no site had would be a row of zeros.
bool has_any(const RunReport& report, SpanCause cause) {
  return std::ranges::any_of(
      report.sites, [=](const auto& site) { return site.time().total.seconds(cause) > 0; });
}

std::string idle_title(const RunReport& report) {
  if (report.rounds_done == 0) return "Device idle time, seconds (no round is over)";
  // Sites that were away have fewer rounds, and each site's mean is over its own.
  const auto [fewest, largest] =
      std::ranges::minmax_element(report.sites, {}, &SiteReport::rounds_worked);
  const auto least = fewest->rounds_worked, most = largest->rounds_worked;
  // Sites of a run under way differ by one round now and then.
  if (most - least <= 1) {
    return fmt::format("Device idle time, seconds a round (mean of {})", report.rounds_done);
  }
  return fmt::format("Device idle time, seconds a round (mean of each site's {} to {})", least,
                     most);
}

}  // namespace

// `wait` and `wan` always have a row, for comparison with the papers; other causes only if they
// occur.
Table idle_table(const RunReport& report) {
  Table table{.title = idle_title(report), .header = {"cause"}, .rows = {}, .trailing_columns = 2};
  for (const auto& site : report.sites) table.header.push_back(site.site);
  table.header.insert(table.header.end(), {"total", "share"});
  IdleRows rows(report, table);
  for (std::size_t i = 0; i < kSpanCauses; ++i) {
    const auto cause = static_cast<SpanCause>(i);
    const bool always = cause == SpanCause::kWait || cause == SpanCause::kWan;
    if (cause == SpanCause::kServe || (!always && !has_any(report, cause))) continue;
    rows.add(label_of(cause), [=](const SiteTime& time) { return time.total.seconds(cause); });
  }
  rows.add(
      "idle", [](const SiteTime& time) { return time.total.idle_seconds(); }, true);
  rows.add("training", [](const SiteTime& time) { return time.total.compute_seconds; });
  if (has_any(report, SpanCause::kServe)) {
    rows.add("serving", [](const SiteTime& time) { return time.total.serve_seconds(); });
  }
  if (std::ranges::any_of(report.sites,
                          [](const auto& site) { return site.time().lost_seconds > 0; })) {
    rows.add("lost to failures", [](const SiteTime& time) { return time.lost_seconds; });
  }
  // The shares are of what is accounted for, and add up to all of it.
  rows.add(
      "not accounted for", [](const SiteTime& time) { return time.unexplained_seconds(); },
      /*is_sum=*/false, /*has_share=*/false);
  rows.add(
      "wall time", [](const SiteTime& time) { return time.wall_seconds; }, /*is_sum=*/true,
      /*has_share=*/false);
  Table::Row fractions{{"idle share of a site"}};
  TimeUse all;
  for (const auto& site : report.sites) {
    fractions.cells.push_back(percent_text(site.time().total.idle_fraction()));
    all += site.time().total;
  }
  fractions.cells.insert(fractions.cells.end(), {percent_text(all.idle_fraction()), ""});
  table.rows.push_back(std::move(fractions));
  return table;
}

}  // namespace farstep
