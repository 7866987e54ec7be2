// What another site tells when sites meet before a run, and what `farstep doctor --peers` says of
// it.

#include "trainer/probe/site_note.h"

#include "tests/fuzz/fuzz_input.h"
#include "trainer/doctor/meeting_findings.h"

using namespace farstep;

namespace {

constexpr std::size_t kLongestText = 4096;

void check_text(std::string_view text) {
  const bool shows = std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
  FARSTEP_CHECK(shows && text.size() <= kLongestText, "{}", text);
}

void check_findings(const SiteNote& own, const SiteNote& other) {
  Meeting meeting;
  meeting.view = {.generation = 1, .members = {"a", "b"}, .self = 0};
  meeting.notes = {own, other};
  for (const auto& finding : meeting_findings(meeting, 1'000'000)) check_text(line_of(finding));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  static const SiteNote kOwn = {
      .links = {{.peer = "b", .rtt_seconds = 0.02, .bandwidth_bits_per_second = 8e7}},
      .clock_offset_seconds = 0.1,
      .data_digest = "0123456789abcdef"};
  try {
    const auto note = read_note("b", std::string(text_of(data, size)));
    const auto text = to_json(note).dump();
    FARSTEP_CHECK(to_json(read_note("b", text)).dump() == text, "{}", text);
    check_findings(kOwn, note);
    check_findings(note, note);
  } catch (const PeerError& error) {
    check_text(error.what());
  }
  return 0;
}
