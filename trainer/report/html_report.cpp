#include "trainer/report/html_report.h"

#include "trainer/report/membership.h"
#include "trainer/report/report_charts.h"
#include "trainer/report/report_tables.h"
#include "trainer/report/svg_chart.h"
#include "trainer/report/timeline_chart.h"
#include "trainer/telemetry/figure_text.h"

namespace farstep {

namespace {

// Two hundred rows keep a page of any run below a megabyte, and show every phase of it.
constexpr std::size_t kMostRoundRows = 200;
constexpr std::size_t kMostLegendSites = 12;  // a longer legend is taller than its chart

// One file without scripts or fonts from elsewhere: a report is mailed, and read without a network.
constexpr std::string_view kStyle = R"css(
:root { color-scheme: light dark; --page: #f6f7f9; --card: #ffffff; --ink: #1c2330; --soft: #667085;
  --line: #e3e7ee; --lane: #eef1f5; --compute: #5b8def; --wait: #e5533d; --wan: #f5a524;
  --outer: #8e6fd8; --data: #14a3a8; --checkpoint: #8a94a6; --evaluate: #5aa845; --recovery: #d6409f;
  --serve: #2f9e8f; --validation: #1c2330; --site-0: #5b8def; --site-1: #e08a3c; --site-2: #3aa76d; --site-3: #b267d6;
  --site-4: #d65a6f; --site-5: #2aa5b8; --site-6: #9a8b3c; --site-7: #7a869a; }
@media (prefers-color-scheme: dark) {
  :root { --page: #11151c; --card: #191f29; --ink: #e7ebf2; --soft: #98a2b3; --line: #2a3240;
    --lane: #222a36; --compute: #4a7bdc; --wait: #ee6a55; --wan: #e9a63a; --outer: #9a80e0;
    --data: #22b3b8; --checkpoint: #7d889b; --evaluate: #66b552; --recovery: #e05bb0;
    --serve: #39b3a3; --validation: #f2f5fa; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 14px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1240px; margin: 0 auto; padding: 36px 20px 64px; }
h1 { font-size: 26px; line-height: 1.2; margin: 0 0 4px; letter-spacing: -.01em; }
h2 { font-size: 15px; margin: 0 0 14px; }
p { margin: 0; color: var(--soft); }
section, .figure { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 18px 20px; }
section { margin-top: 16px; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(160px, 1fr)); gap: 16px;
  margin-top: 24px; }
.figure b { display: block; font-size: 24px; line-height: 1.25; font-weight: 600;
  font-variant-numeric: tabular-nums; }
.figure span { color: var(--soft); font-size: 13px; }
.pair { display: grid; grid-template-columns: minmax(0, 4fr) minmax(0, 3fr); gap: 0 16px; }
.wide { overflow-x: auto; }
svg { display: block; width: 100%; height: auto; }
.wide svg { min-width: 760px; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 0 0 14px; padding: 0;
  list-style: none; font-size: 13px; color: var(--soft); }
.legend i { display: inline-block; width: 11px; height: 11px; border-radius: 3px;
  margin-right: 7px; }
.legend i.stroke { height: 3px; vertical-align: middle; }
.tick { font-size: 12px; fill: var(--soft); }
.lane-name { font-size: 13px; font-weight: 600; fill: var(--ink); }
.value { font-size: 13px; fill: var(--ink); }
.grid { stroke: var(--line); }
.mark { stroke: var(--soft); }
.cut { stroke: var(--ink); stroke-dasharray: 3 3; }
.lane { fill: var(--lane); }
.tip { fill: transparent; }
.tip:hover { fill: rgba(255, 255, 255, .22); }
.curve { fill: none; stroke-width: 1.1; stroke-linejoin: round; opacity: .6; }
.curve.validation { stroke: var(--validation); stroke-width: 2.4; opacity: 1; }
.validation-point { fill: var(--card); stroke: var(--validation); stroke-width: 2; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 6px 12px; text-align: right; white-space: nowrap; }
th.left, td.left { text-align: left; }
th:first-child, td:first-child { padding-left: 0; }
th:last-child, td:last-child { padding-right: 0; }
th { color: var(--soft); font-weight: 500; border-bottom: 1px solid var(--line); }
tr.sum td { font-weight: 600; border-top: 1px solid var(--line); }
.rounds { max-height: 460px; overflow: auto; }
.rounds th { position: sticky; top: 0; background: var(--card); }
@media (max-width: 860px) { .pair { grid-template-columns: 1fr; } }
)css";

// Classes instead of colours in each element: the page follows the reader's light or dark mode.
// Returns the classes of fills and strokes that the charts use.
std::string color_style() {
  std::string css = ".compute { fill: var(--compute); background: var(--compute); }\n";
  for (const auto cause : enum_names(SpanCause{})) {
    css += fmt::format(".{0} {{ fill: var(--{0}); background: var(--{0}); }}\n", cause);
  }
  // The ninth site has the first one's colour again; its line has a tip with the name.
  for (int i = 0; i < 8; ++i) {
    css += fmt::format(
        ".curve.site-{0} {{ stroke: var(--site-{0}); }} i.site-{0} {{ background: var(--site-{0}); "
        "}}\n",
        i);
  }
  return css + "i.validation { background: var(--validation); }\n";
}

std::string legend_item(std::string_view css_class, std::string_view label) {
  return fmt::format("<li><i class=\"{}\"></i>{}</li>\n", css_class, escape_html(label));
}

// Only the causes that occur: a legend of all of them would name what is nowhere to be seen.
std::string activity_legend(const RunReport& report, bool with_training) {
  std::string html = "<ul class=\"legend\">\n";
  if (with_training) html += legend_item("compute", "training");
  TimeUse all;
  for (const auto& site : report.sites) all += site.time.total;
  for (std::size_t i = 0; i < kSpanCauses; ++i) {
    const auto cause = static_cast<SpanCause>(i);
    if (all.seconds(cause) > 0) html += legend_item(name_of(cause), label_of(cause));
  }
  return html + "</ul>\n";
}

std::string loss_legend(const RunReport& report) {
  std::string html = "<ul class=\"legend\">\n";
  html += legend_item("stroke validation", "validation, all sites");
  if (report.sites.size() <= kMostLegendSites) {
    for (std::size_t i = 0; i < report.sites.size(); ++i) {
      html += legend_item(fmt::format("stroke site-{}", i % 8), report.sites[i].site);
    }
  } else {
    html += legend_item("stroke site-0", "training, a line a site");
  }
  return html + "</ul>\n";
}

std::string accuracy_legend() {
  return "<ul class=\"legend\">\n" + legend_item("stroke validation", "validation, all sites") +
         "</ul>\n";
}

std::string table_html(const Table& table) {
  // Every text is escaped here, at the one place where it becomes HTML: names come from configs.
  const auto cells = [&table](const std::vector<std::string>& row, std::string_view tag) {
    std::string html;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const auto side = i < table.left_columns ? " class=\"left\"" : "";
      html += fmt::format("<{0}{1}>{2}</{0}>", tag, side, escape_html(row[i]));
    }
    return html;
  };
  std::string html =
      "<table>\n<thead><tr>" + cells(table.header, "th") + "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    html += (row.is_sum ? "<tr class=\"sum\">" : "<tr>") + cells(row.cells, "td") + "</tr>\n";
  }
  return html + "</tbody>\n</table>\n";
}

std::string section(std::string_view title, std::string_view content,
                    std::string_view css_class = "wide") {
  return fmt::format("<section>\n<h2>{}</h2>\n<div class=\"{}\">\n{}</div>\n</section>\n",
                     escape_html(title), css_class, content);
}

std::string table_section(const Table& table, std::string_view css_class = "wide") {
  return section(table.title, table_html(table), css_class);
}

std::string paragraphs(const std::vector<std::string>& lines) {
  std::string html;
  for (const auto& line : lines) html += "<p>" + escape_html(line) + "</p>\n";
  return html;
}

std::string figure(std::string_view value, std::string_view label) {
  return fmt::format("<div class=\"figure\"><b>{}</b><span>{}</span></div>\n", escape_html(value),
                     escape_html(label));
}

// The figures that a reader wants first, above all tables.
std::string figures(const RunReport& report) {
  TimeUse all;
  // Added over the sites, although they train at different times: it is the speed of the whole run.
  double tokens_per_second = 0;
  for (const auto& site : report.sites) {
    all += site.time.total;
    tokens_per_second += site.tokens_per_second();
  }
  const double total = all.total_seconds();
  const double waiting = total > 0 ? all.seconds(SpanCause::kWait) / total : 0;
  return "<div class=\"figures\">\n" +
         figure(fmt::format("{:.1f} %", 100 * all.idle_fraction()), "idle device time") +
         figure(fmt::format("{:.1f} %", 100 * waiting), "waiting for peers") +
         figure(loss_text(report.final_loss()),
                report.validation_losses.empty() ? "training loss" : "validation loss") +
         (report.final_accuracy() ? figure(accuracy_text(report.final_accuracy()), "accuracy")
                                  : std::string()) +
         figure(short_count_text(tokens_per_second), report.unit() + "/s, all sites") +
         figure(bytes_text(report.wan_bytes_sent()), "sent over the WAN") + "</div>\n";
}

}  // namespace

// From the whole to the details: figures, timeline, charts, tables, and each round last.
std::string html_report(const RunReport& report) {
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}: Farstep report</title>\n<style>{}{}</style>\n</head>\n<body>\n<main>\n",
      escape_html(report.run), kStyle, color_style());
  html += "<h1>" + escape_html(report.run) + "</h1>\n<p>";
  const auto sentences = facts(report);
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    html += (i == 0 ? "" : " &middot; ") + escape_html(sentences[i]);
  }
  html += "</p>\n" + figures(report);
  html += section("Timeline", activity_legend(report, true) + timeline_chart(report));
  if (const auto membership = membership_of(report); !membership.changes.empty()) {
    html += section("Who took part, by round", presence_chart(membership));
    html += section("Why the membership changed", paragraphs(change_lines(membership)));
  }
  html += "<div class=\"pair\">\n" +
          section("Loss", loss_legend(report) + loss_chart(report), "chart") +
          section("Idle time", activity_legend(report, false) + idle_chart(report), "chart") +
          "</div>\n";
  if (!report.validation_accuracies.empty()) {
    html += "<div class=\"pair\">\n" +
            section("Accuracy", accuracy_legend() + accuracy_chart(report), "chart") + "</div>\n";
  }
  html += table_section(idle_table(report));
  if (const auto devices = device_table(report); !devices.rows.empty()) {
    html += table_section(devices);
  }
  if (const auto plan = plan_lines(report); !plan.empty()) {
    html += section("The last plan, and why", paragraphs(plan));
  }
  if (const auto changes = sync_lines(report); !changes.empty()) {
    html += section("Changes of the sync", paragraphs(changes));
  }
  html += table_section(work_table(report)) + table_section(traffic_table(report));
  if (const auto links = link_table(report); !links.rows.empty()) html += table_section(links);
  html += table_section(round_table(report, kMostRoundRows), "wide rounds");
  if (!report.notes.empty()) html += section("Left out", paragraphs(report.notes));
  return html + "</main>\n</body>\n</html>\n";
}

}  // namespace farstep
