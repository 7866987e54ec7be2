// farstep report: what a run did.
#include "trainer/report/report.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "trainer/base/system/file.h"
#include "trainer/commands/command_line.h"
#include "trainer/report/html_report.h"
#include "trainer/report/report_text.h"
#include "trainer/series/csv.h"
#include "trainer/series/tensorboard.h"

namespace farstep {

namespace {

struct ReportOptions {
  std::string run_folder;
  bool json = false, idle = false;
  std::string html, csv, tensorboard;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("run_folder", run_folder, "folder of a run, or of one site of it", a_folder(kPositional));
    visit("json", json, "print one JSON object instead of tables");
    visit("idle", idle, "print only the idle time and the plan");
    visit("html", html, "also write a page that needs nothing else to this file");
    visit("csv", csv, "also write every figure by step and round to this file");
    visit("tensorboard", tensorboard, "also write them to this folder, for tensorboard --logdir",
          a_folder());
  }
};

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

}  // namespace

int report_command(const Arguments& arguments) {
  const auto options = parse_command_line<ReportOptions>("report", arguments);
  if (!options) return 0;
  const auto report = build_report(options->run_folder);
  // Beside the report too, as its figures are without these sites.
  for (const auto& file : report.unreadable) {
    spdlog::warn("{} is in no figure: {}", file.site, file.reason);
  }
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
