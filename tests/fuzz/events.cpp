// The event files of one or two sites, with a zero between them, up to every form of the report.

#include "tests/fuzz/fuzz_input.h"
#include "trainer/base/system/file.h"
#include "trainer/report/html_report.h"
#include "trainer/report/report_text.h"

using namespace farstep;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const auto input = text_of(data, size);
  const auto first = input.substr(0, input.find('\0'));
  for (const auto* site : {"a", "b"}) remove_folder(scratch_folder() / site);
  make_folder(scratch_folder() / "a");
  write_file(scratch_folder() / "a" / "events.jsonl", first);
  if (first.size() < size) {
    make_folder(scratch_folder() / "b");
    write_file(scratch_folder() / "b" / "events.jsonl", input.substr(first.size() + 1));
  }
  accept_or_refuse([&] {
    const auto report = build_report(scratch_folder().path());
    report_text(report);
    report_json(report).dump();
    html_report(report);
  });
  return 0;
}
