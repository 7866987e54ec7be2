// Measures what the report of a long run takes: seconds of the processor, and the most memory.
//
//   report_memory make FOLDER ROUNDS STEPS SITES    writes the records of a made-up run
//   report_memory read FOLDER [page|csv]            reads them, and prints the JSON report
//
// Two commands, since the records that are written take memory themselves.
#include <fmt/core.h>
#include <sys/resource.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/trainer/telemetry/synthetic_run.h"
#include "trainer/account/run_follower.h"
#include "trainer/report/html_report.h"
#include "trainer/report/report.h"
#include "trainer/series/csv.h"

using namespace farstep;

namespace {

int make(const std::string& folder, int64_t rounds, int64_t steps, std::size_t sites) {
  SyntheticRun run;
  run.step_seconds.clear();
  for (std::size_t i = 0; i < sites; ++i) {
    run.step_seconds.push_back(0.2 + 0.01 * static_cast<double>(i));
  }
  run.rounds = rounds;
  run.steps = steps;
  run.write(folder);
  return 0;
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

int read(const std::string& folder, const std::string& what) {
  uintmax_t bytes = 0;
  for (const auto& file : find_event_files(folder)) bytes += std::filesystem::file_size(file);
  const auto report = build_report(folder);
  std::size_t shown = 0;
  if (what == "page") shown = html_report(report).size();
  if (what == "csv") shown = csv_text(series_of(report)).size();
  fmt::print("{}\n", report_json(report).dump());
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  // Not the time that passed: other programs take their part of that.
  const double seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  fmt::print(stderr,
             "{:.0f} MB of records: {:.1f} s of the processor, at most {:.0f} MiB of memory; {} "
             "bytes of {}\n",
             static_cast<double>(bytes) * 1e-6, seconds,
             static_cast<double>(usage.ru_maxrss) / 1024, shown, what);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::vector<std::string> words(arguments + 1, arguments + count);
  if (words.size() == 5 && words[0] == "make") {
    return make(words[1], std::stoll(words[2]), std::stoll(words[3]), std::stoull(words[4]));
  }
  if (words.size() >= 2 && words[0] == "read")
    return read(words[1], words.size() > 2 ? words[2] : "");
  fmt::print(stderr, "report_memory make FOLDER ROUNDS STEPS SITES | read FOLDER [page|csv]\n");
  return 2;
}
