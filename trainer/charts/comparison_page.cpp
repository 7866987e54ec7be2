#include "trainer/charts/comparison_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "trainer/charts/chart_files.h"
#include "trainer/charts/run_curves.h"
#include "trainer/report/html_report.h"
#include "trainer/report/page_style.h"
#include "trainer/report/report_tables.h"
#include "trainer/report/svg_chart.h"
#include "trainer/telemetry/figure_text.h"

namespace farstep {

namespace {

std::filesystem::path last_parts(const std::filesystem::path& folder, std::ptrdiff_t count) {
  const auto parts = std::distance(folder.begin(), folder.end());
  std::filesystem::path tail;
  for (auto part = std::next(folder.begin(), std::max<std::ptrdiff_t>(parts - count, 0));
       part != folder.end(); ++part) {
    tail /= *part;
  }
  return tail;
}

// Those in the figures, of all that took part.
std::string sites_text(const RunReport& report) {
  const auto there = std::ssize(report.sites), all = std::ssize(report.site_names);
  return there == all ? count_text(all)
                      : fmt::format("{} of {}", count_text(there), count_text(all));
}

std::optional<double> newest(const std::map<int64_t, double>& losses) {
  return losses.empty() ? std::nullopt : std::optional(losses.rbegin()->second);
}

// In JSON "<" occurs in texts alone, and must not end the element.
std::string text_of(const Json& data) {
  std::string text;
  for (const char letter : data.dump()) {
    if (letter == '<') {
      text += "\\u003c";
    } else {
      text += letter;
    }
  }
  return text;
}

}  // namespace

// The longest tail is the whole path, and no two folders have the same.
std::vector<std::string> names_of_runs(std::span<const RunReport> reports,
                                       std::span<const std::filesystem::path> folders) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const auto count = [&](const auto& is_like) {
      std::size_t alike = 0;
      for (std::size_t k = 0; k < reports.size(); ++k) {
        alike += reports[k].run == reports[i].run && is_like(folders[k]) ? 1 : 0;
      }
      return alike;
    };
    names.push_back(reports[i].run);
    if (count([](const auto&) { return true; }) == 1) continue;
    const auto parts = std::distance(folders[i].begin(), folders[i].end());
    for (std::ptrdiff_t length = 1; length <= parts; ++length) {
      const auto tail = last_parts(folders[i], length);
      names.back() = fmt::format("{} ({})", reports[i].run, tail.string());
      if (count([&](const auto& folder) { return last_parts(folder, length) == tail; }) == 1) break;
    }
  }
  return names;
}

Table comparison_table(std::span<const RunReport> reports, std::span<const std::string> names) {
  const auto unit = unit_of(reports);
  Table table{.title = "Runs",
              .header = {"run", "sites", "rounds", unit, unit + "/s", "idle", "training loss",
                         "validation loss", "sent"},
              .rows = {}};
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const auto& report = reports[i];
    int64_t tokens = 0;
    for (const auto& site : report.sites) tokens += site.tokens;
    table.rows.push_back(
        {{names[i], sites_text(report),
          fmt::format("{} of {}", report.rounds_done, report.newest_run().rounds),
          short_count_text(static_cast<double>(tokens)),
          short_count_text(report.tokens_per_second()),
          percent_text(report.total_time().idle_fraction()), loss_text(newest(report.train_losses)),
          loss_text(newest(report.validation_losses)), bytes_text(report.wan_bytes_sent())}});
  }
  return table;
}

// By name: the runs may be of versions that list their settings otherwise.
Table difference_table(std::span<const RunReport> reports, std::span<const std::string> names) {
  std::map<std::string, std::vector<std::string>> values;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const auto& run = reports[i].newest_run();
    for (const auto* lines : {&run.settings, &run.default_settings}) {
      for (const auto& line : *lines) {
        auto [name, value] = setting_parts(line);
        auto& of_runs = values[name];
        of_runs.resize(reports.size(), "-");
        of_runs[i] = std::move(value);
      }
    }
  }
  Table table{.title = "Settings that differ",
              .header = {"setting"},
              .rows = {},
              .left_columns = reports.size() + 1};
  table.header.insert(table.header.end(), names.begin(), names.end());
  for (auto& [name, of_runs] : values) {
    if (std::ranges::count(of_runs, of_runs.front()) == std::ssize(of_runs)) continue;
    of_runs.insert(of_runs.begin(), name);
    table.rows.push_back({std::move(of_runs)});
  }
  return table;
}

std::string comparison_page(std::span<const RunReport> reports,
                            std::span<const std::string> names) {
  const auto curves = curves_of_runs(reports, names);
  std::string html = page_begin("Runs: Farstep report", chart_css());
  html += fmt::format(
      "<h1>{} runs</h1>\n<p>A thick line is a run's validation, a thin one its training. Learning "
      "rate and gradient norm are means over the sites.</p>\n"
      "<ul class=\"legend\">\n",
      reports.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    html += fmt::format("<li><i class=\"stroke {}\"></i>{}</li>\n", color_class(i, names.size()),
                        escape_html(names[i]));
  }
  html += "</ul>\n<div id=\"controls\" class=\"controls\"></div>\n<div class=\"charts halves\">\n";
  for (const auto& chart : curves["charts"]) {
    html +=
        fmt::format("<section>\n<h2>{}</h2>\n<div id=\"{}\"></div>\n</section>\n",
                    escape_html(chart["title"].get<std::string>()), chart["id"].get<std::string>());
  }
  html +=
      "</div>\n<noscript><p>The curves need scripts, all of which are in this "
      "page.</p></noscript>\n";
  html += table_section(comparison_table(reports, names));
  if (const auto differences = difference_table(reports, names); !differences.rows.empty()) {
    html += table_section(differences);
  }
  std::vector<std::string> notes;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    for (const auto& note : reports[i].notes)
      notes.push_back(fmt::format("{}: {}", names[i], note));
  }
  if (!notes.empty()) html += lines_section("Left out", notes);
  return fmt::format(
      "{}</main>\n<script id=\"data\" type=\"application/json\">{}</script>\n"
      "<script type=\"module\">\n{}{}</script>\n</body>\n</html>\n",
      html, text_of(curves), chart_script(), comparison_script());
}

}  // namespace farstep
