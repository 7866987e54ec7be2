// farstep report: what a run did.
#include "trainer/report/report.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>

#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/charts/comparison_page.h"
#include "trainer/commands/command_line.h"
#include "trainer/report/html_report.h"
#include "trainer/report/report_text.h"
#include "trainer/series/csv.h"
#include "trainer/series/tensorboard.h"

namespace farstep {

namespace {

struct ReportOptions {
  std::vector<std::string> run_folders;
  bool json = false, idle = false;
  std::string html, csv, tensorboard;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("run_folders", run_folders,
          "folder of a run, or of one site of it; of several runs, to compare them",
          a_folder(kPositional));
    visit("json", json, "print one JSON object instead of tables");
    visit("idle", idle, "print only the idle time and the plan");
    visit("html", html, "also write a page that needs nothing else to this file");
    visit("csv", csv, "also write every figure by step and round to this file");
    visit("tensorboard", tensorboard, "also write them to this folder, for tensorboard --logdir",
          a_folder());
  }
};

RunReport read(const std::filesystem::path& folder) {
  auto report = build_report(folder);
  // Beside the report too, as its figures are without these sites.
  for (const auto& file : report.unreadable) {
    spdlog::warn("{} is in no figure: {}", file.site, file.reason);
  }
  return report;
}

void write_series(const ReportOptions& options, const RunReport& report) {
  const auto series = series_of(report);
  if (!options.csv.empty()) {
    write_file_durably(options.csv, csv_text(series));
    spdlog::info("{}: the figures as CSV", options.csv);
  }
  if (!options.tensorboard.empty()) {
    write_tensorboard(series, options.tensorboard);
    spdlog::info("{}: the figures for TensorBoard", options.tensorboard);
  }
}

// As lines, since the values of some settings are longer than a line.
std::string differences_text(const Table& table) {
  std::vector<std::string> lines;
  for (const auto& row : table.rows) {
    auto& line = lines.emplace_back(row.cells.front() + ":");
    for (std::size_t i = 1; i < row.cells.size(); ++i) {
      line += fmt::format("{} {} in {}", i == 1 ? "" : ",", row.cells[i], table.header[i]);
    }
  }
  return titled_text(table.title, lines);
}

// Each run's figures are in the reports of its own; here they are beside those of the others.
void compare(const ReportOptions& options) {
  if (options.idle || !options.csv.empty() || !options.tensorboard.empty()) {
    throw ConfigError(
        "--idle, --csv and --tensorboard are about one run, and several folders are given: call "
        "`farstep report` for each of them");
  }
  std::vector<std::filesystem::path> folders;
  std::vector<RunReport> reports;
  for (const std::filesystem::path given : options.run_folders) {
    reports.push_back(read(given));
    folders.push_back(std::filesystem::canonical(given));
    if (std::ranges::count(folders, folders.back()) > 1) {
      throw ConfigError(fmt::format("{} is given twice: name each run once", given.string()));
    }
  }
  const auto names = names_of_runs(reports, folders);
  if (!options.html.empty()) {
    write_file_durably(options.html, comparison_page(reports, names));
    spdlog::info("{}: the runs as a page", options.html);
  }
  if (!options.json) {
    fmt::print("{}", table_text(comparison_table(reports, names), kReportColumns));
    fmt::print("{}", differences_text(difference_table(reports, names)));
    return;
  }
  Json runs = Json::array();
  for (std::size_t i = 0; i < reports.size(); ++i) {
    runs.push_back({{"name", names[i]}, {"report", report_json(reports[i])}});
  }
  fmt::print("{}\n", Json{{"runs", std::move(runs)}}.dump());
}

}  // namespace

int report_command(const Arguments& arguments) {
  const auto options = parse_command_line<ReportOptions>("report", arguments);
  if (!options) return 0;
  if (options->run_folders.size() > 1) {
    compare(*options);
    return 0;
  }
  const auto report = read(options->run_folders.front());
  if (!options->html.empty()) {
    write_file_durably(options->html, html_report(report));
    spdlog::info("{}: the report as a page", options->html);
  }
  if (!options->csv.empty() || !options->tensorboard.empty()) write_series(*options, report);
  fmt::print("{}", options->json   ? report_json(report).dump() + "\n"
                   : options->idle ? idle_text(report)
                                   : report_text(report));
  return 0;
}

}  // namespace farstep
