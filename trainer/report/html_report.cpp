#include "trainer/report/html_report.h"

#include "trainer/account/membership.h"
#include "trainer/account/outliers.h"
#include "trainer/account/rises.h"
#include "trainer/report/page_style.h"
#include "trainer/report/report_charts.h"
#include "trainer/report/report_tables.h"
#include "trainer/report/svg_chart.h"
#include "trainer/report/timeline_chart.h"
#include "trainer/telemetry/figure_text.h"

namespace farstep {

namespace {

// Two hundred rows keep a page of any run below a megabyte, and show every phase of it.
constexpr std::size_t kMostRoundRows = 200;

// `mark` is how an entry shows its colour: as a surface, or as a "stroke".
std::string legend(const std::vector<LegendEntry>& entries, std::string_view mark = "") {
  std::string html = "<ul class=\"legend\">\n";
  for (const auto& [css_class, label] : entries) {
    html += fmt::format("<li><i class=\"{}{}{}\"></i>{}</li>\n", mark, mark.empty() ? "" : " ",
                        css_class, escape_html(label));
  }
  return html + "</ul>\n";
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

std::string folded(std::string_view title, std::string_view content) {
  return fmt::format("<details>\n<summary>{}</summary>\n{}</details>\n", escape_html(title),
                     content);
}

std::string figure(std::string_view value, std::string_view label) {
  return fmt::format("<div class=\"figure\"><b>{}</b><span>{}</span></div>\n", escape_html(value),
                     escape_html(label));
}

std::string figures(const RunReport& report) {
  std::string html = "<div class=\"figures\">\n";
  for (const auto& [value, label] : headline_figures(report)) html += figure(value, label);
  return html + "</div>\n";
}

}  // namespace

std::string page_begin(std::string_view title, std::string_view more_style) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}</title>\n<style>{}{}</style>\n</head>\n<body>\n<main>\n",
      escape_html(title), page_style(), more_style);
}

std::string table_section(const Table& table, std::string_view css_class) {
  return section(table.title, table_html(table), css_class);
}

std::string lines_section(std::string_view title, std::span<const std::string> lines) {
  std::string html;
  for (const auto& line : lines) html += "<p>" + escape_html(line) + "</p>\n";
  return section(title, html);
}

// From the whole to the details: figures, timeline, charts, tables, and each round last.
std::string html_report(const RunReport& report) {
  std::string html = page_begin(report.run + ": Farstep report");
  html += "<h1>" + escape_html(report.run) + "</h1>\n<p>";
  const auto sentences = facts(report);
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    html += (i == 0 ? "" : " &middot; ") + escape_html(sentences[i]);
  }
  html += "</p>\n" + figures(report);
  html += section("Timeline", legend(timeline_legend(report)) + timeline_chart(report), "chart");
  if (const auto membership = membership_of(report); !membership.changes.empty()) {
    html += section("Who took part, by round", presence_chart(membership), "chart");
    html += lines_section("Why the membership changed", change_lines(membership));
  }
  html += "<div class=\"pair\">\n" +
          section("Loss", legend(loss_legend(report), "stroke") + loss_chart(report), "chart") +
          section("Idle time", legend(idle_legend(report)) + idle_chart(report), "chart") +
          "</div>\n";
  if (!report.validation_accuracies.empty()) {
    const auto entries = legend({{"validation", "validation, all sites"}}, "stroke");
    html += "<div class=\"pair\">\n" +
            section("Accuracy (%)", entries + accuracy_chart(report), "chart") + "</div>\n";
  }
  if (const auto charts = step_charts(report); !charts.empty()) {
    html += "<div class=\"pair even\">\n";
    for (const auto& [title, svg] : charts) html += section(title, svg, "chart");
    html += "</div>\n";
  }
  html += table_section(idle_table(report));
  if (const auto devices = device_table(report); !devices.rows.empty()) {
    html += table_section(devices);
  }
  if (const auto plan = plan_lines(report); !plan.empty()) {
    html += lines_section("The last plan, and why", plan);
  }
  if (const auto changes = sync_lines(report); !changes.empty()) {
    html += lines_section("Changes of the sync", changes);
  }
  if (const auto outliers = outlier_lines(report); !outliers.empty()) {
    html += lines_section("Deltas out of proportion", outliers);
  }
  if (const auto rises = rise_lines(report); !rises.empty()) {
    html += lines_section("Validation losses that rose", rises);
  }
  html += table_section(work_table(report)) + table_section(traffic_table(report));
  if (const auto links = link_table(report); !links.rows.empty()) html += table_section(links);
  html += table_section(round_table(report, kMostRoundRows), "wide rounds");
  if (const auto settings = chosen_settings_table(report); !settings.rows.empty()) {
    const auto defaults = default_settings_table(report);
    html += section(settings.title,
                    table_html(settings) + folded(defaults.title, table_html(defaults)));
  }
  if (!report.notes.empty()) html += lines_section("Left out", report.notes);
  return html + "</main>\n</body>\n</html>\n";
}

}  // namespace farstep
