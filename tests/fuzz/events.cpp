// The event files of one or two sites, with a zero between them, up to every form of the report. A
// site that forgets records as soon as it can has the same figures.

#include "tests/fuzz/fuzz_input.h"
#include "trainer/report/html_report.h"
#include "trainer/report/report_text.h"
#include "trainer/telemetry/event_log.h"

using namespace farstep;

namespace {

// Returns the figures of a run of this site alone.
std::string figures_of(const SiteReport& site) {
  RunReport report;
  report.sites.push_back(site);
  report.settle();
  return report_json(report).dump();
}

// Real runs fold thousands of records, which an input does not have.
void check_folding(const std::filesystem::path& file) {
  const auto records = read_event_log(file).records;
  if (records.empty() || !std::holds_alternative<RunEvent>(records.front().event)) return;
  SiteReport whole(records.front().site);
  SiteReport folding(records.front().site, file, 2);
  for (const auto& record : records) {
    whole.add(record);
    folding.add(record);
  }
  if (figures_of(whole) != figures_of(folding)) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const auto input = text_of(data, size);
  const auto first = input.substr(0, input.find('\0'));
  const auto run = emptied("run");
  const auto write_site = [&](const std::string& site, std::string_view records) {
    make_folder(run / site);
    write_file(run / site / "events.jsonl", records);
  };
  write_site("a", first);
  if (first.size() < size) write_site("b", input.substr(first.size() + 1));
  accept_or_refuse([&] {
    const auto report = build_report(run);
    report_text(report);
    report_json(report).dump();
    html_report(report);
    check_folding(run / "a" / "events.jsonl");
  });
  return 0;
}
