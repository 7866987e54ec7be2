#include "trainer/doctor/meeting_findings.h"

#include "tests/support/catch.h"

namespace farstep {

namespace {

using Catch::Contains;

// What site a knows after a meeting with b: 80 and 40 Mbit/s, and b's clock half a second ahead.
Meeting meeting_of_two() {
  Meeting meeting;
  meeting.view = {.generation = 1, .members = {"a", "b"}, .self = 0};
  for (const auto& name : meeting.view.members) meeting.run.sites.emplace_back().name = name;
  meeting.notes = {
      {.links = {{.peer = "b", .rtt_seconds = 0.02, .bandwidth_bits_per_second = 80e6}},
       .clock_offset_seconds = 0.1,
       .data_digest = "d"},
      {.links = {{.peer = "a", .rtt_seconds = 0.02, .bandwidth_bits_per_second = 40e6}},
       .clock_offset_seconds = -0.4,
       .data_digest = "d"}};
  return meeting;
}

}  // namespace

TEST_CASE("a peer's link is told both ways, with the time of a sync over the slower one") {
  // Half of the deltas there and the mean of the other half: 4 MB, at 40 Mbit/s 0.8 s.
  const auto findings = meeting_findings(meeting_of_two(), 1'000'000);
  REQUIRE(findings.size() == 3);
  CHECK(exit_code_of(findings) == 0);
  CHECK_THAT(findings[0].text, Contains("b: connects; round trip 20.00 ms, 80.0 Mbit/s to it, 40.0 "
                                        "Mbit/s from it") &&
                                   Contains("0.8 s"));
  CHECK_THAT(findings[1].text, Contains("b is 0.50 s ahead of"));
  CHECK_THAT(findings[2].text, Contains("the same as this site"));
}

TEST_CASE("other data, a link without figures and a site that stayed away are told") {
  auto meeting = meeting_of_two();
  meeting.notes[1].data_digest = "e";
  meeting.notes[1].links.clear();
  meeting.run.sites.emplace_back().name = "c";
  const auto findings = meeting_findings(meeting, std::nullopt);
  REQUIRE(findings.size() == 4);
  CHECK(findings[0].exit_code == 4);
  CHECK(findings[2].exit_code == 3);
  CHECK_THAT(findings[2].text, Contains("d here and e at b") && Contains("copy one"));
  CHECK(findings[3].grade == Grade::kWarning);
  CHECK_THAT(findings[3].text, Contains("c did not come"));
  // A site that gets its batches from the master has no data to compare.
  meeting.notes[1].data_digest.clear();
  CHECK(meeting_findings(meeting, std::nullopt).size() == 3);
}

TEST_CASE("a meeting that failed has a fault a line") {
  const auto faults = failed_meeting_findings(ConfigError("a cannot reach b\nb cannot reach a"));
  REQUIRE(faults.size() == 2);
  CHECK(faults[1].text == "b cannot reach a");
  CHECK(exit_code_of(faults) == 2);
}

TEST_CASE("what a peer tells is read strictly") {
  const auto note = meeting_of_two().notes[1];
  const auto again = read_note("b", to_json(note).dump());
  CHECK(to_json(again) == to_json(note));
  const std::string long_digest = R"({"data_digest":")" + std::string(65, 'a') + R"("})";
  for (const char* text :
       {"", "[]", R"({"links":[{"peer":"a","rtt_seconds":-1}]})", R"({"more":1})", R"({"links":[)",
        R"({"\u001b[2J":1})", R"({"data_digest":"\u001b[2J"})", long_digest.c_str()}) {
    INFO(text);
    CHECK_THROWS_WITH(read_note("b", text), Catch::StartsWith("what b tells of its links"));
    CHECK_THROWS_AS(read_note("b", text), PeerError);
    // What a peer writes moves no cursor.
    CHECK_THROWS_WITH(read_note("b", text), !Contains("\x1b"));
  }
}

}  // namespace farstep
