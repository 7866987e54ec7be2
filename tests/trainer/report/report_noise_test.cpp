// The gradient noise scale in a report.
#include <string>
#include <variant>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/trainer/telemetry/synthetic_run.h"
#include "trainer/report/html_report.h"
#include "trainer/report/report_tables.h"
#include "trainer/report/report_text.h"

namespace farstep {

TEST_CASE("a report has the noise scale of the rounds in which it is known") {
  const TemporaryFolder folder;
  SyntheticRun run;
  run.rounds = 4;
  for (std::size_t site = 0; site < run.step_seconds.size(); ++site) {
    auto records = run.records(site);
    for (auto& record : records) {
      auto* round = std::get_if<RoundEvent>(&record.event);
      if (round != nullptr && round->round >= 3) round->noise_scale = 10.0 * double(round->round);
    }
    write_events(folder.path() / std::to_string(site) / "events.jsonl", records);
  }
  const auto report = build_report(folder.path());
  CHECK(report_json(report)["noise_scales"] ==
        Json::parse(R"([{"round":3,"noise_scale":30.0},{"round":4,"noise_scale":40.0}])"));
  CHECK(facts(report).back() == "gradient noise scale 40 sequences");
  const auto rounds = round_table(report, 10);
  CHECK(rounds.header.back() == "noise scale");
  REQUIRE(rounds.rows.size() == 4);
  CHECK(rounds.rows[1].cells.back() == "-");
  CHECK(rounds.rows[2].cells.back() == "30");
  CHECK(html_report(report).find("gradient noise scale 40 sequences") != std::string::npos);
  CHECK(report_text(report).find("gradient noise scale 40 sequences") != std::string::npos);
}

}  // namespace farstep
