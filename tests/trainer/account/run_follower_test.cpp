#include "trainer/account/run_follower.h"

#include <fstream>
#include <random>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/trainer/telemetry/synthetic_run.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/report/report.h"
#include "trainer/report/report_text.h"

namespace farstep {

namespace {

namespace fs = std::filesystem;

SyntheticRun small_run() {
  SyntheticRun run;
  run.step_seconds = {0.25, 0.5, 0.3};
  run.rounds = 4;
  run.steps = 5;
  return run;
}

void append(const fs::path& file, std::string_view text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::app | std::ios::binary) << text;
}

}  // namespace

TEST_CASE("files that grow in any pieces give the report of the whole files") {
  const TemporaryFolder whole;
  const auto run = small_run();
  run.write(whole.path());
  std::mt19937 random(11);
  for (int trial = 0; trial < 10; ++trial) {
    const TemporaryFolder growing;
    RunFollower follower({growing.path()});
    CHECK_FALSE(follower.poll());
    CHECK(follower.report() == nullptr);
    std::vector<std::string> texts;
    std::vector<std::size_t> written(3, 0);
    for (std::size_t site = 0; site < 3; ++site) {
      texts.push_back(read_file(whole / run.site_name(site) / "events.jsonl"));
    }
    while (written[0] + written[1] + written[2] <
           texts[0].size() + texts[1].size() + texts[2].size()) {
      const std::size_t site = random() % 3;
      const auto piece = texts[site].substr(written[site], 1 + random() % 3000);
      written[site] += piece.size();
      append(growing / run.site_name(site) / "events.jsonl", piece);
      if (random() % 3 != 0) continue;
      follower.poll();
      // What one reads at once now is the same.
      const bool has_begun = [&] {
        for (std::size_t i = 0; i < 3; ++i) {
          if (texts[i].substr(0, written[i]).find('\n') != std::string::npos) return true;
        }
        return false;
      }();
      if (!has_begun) continue;
      const auto fresh = build_report(growing.path());
      REQUIRE(report_json(*follower.report()) == report_json(fresh));
      REQUIRE(report_text(*follower.report()) == report_text(fresh));
    }
    follower.poll();
    REQUIRE(report_json(*follower.report()) == report_json(build_report(whole.path())));
    CHECK_FALSE(follower.poll());
  }
}

TEST_CASE("the sites of a run may have folders of their own") {
  const TemporaryFolder folder;
  const auto run = small_run();
  for (std::size_t site = 0; site < 3; ++site) {
    write_events(folder / std::to_string(site) / run.site_name(site) / "events.jsonl",
                 run.records(site));
  }
  RunFollower follower({folder / "0", folder / "1", folder / "2", folder / "absent"});
  CHECK(follower.poll());
  REQUIRE(follower.report()->sites.size() == 3);
  CHECK(follower.report()->sites[2].site == "node3");
}

TEST_CASE("a damaged line and a file that became shorter are errors that name the file") {
  const TemporaryFolder folder;
  const auto run = small_run();
  run.write(folder.path());
  const auto file = folder / "node2" / "events.jsonl";
  RunFollower follower({folder.path()});
  CHECK(follower.poll());
  fs::resize_file(file, 100);
  CHECK_THROWS_WITH(follower.poll(), Catch::Contains("node2") && Catch::Contains("shorter"));
  append(file, "not a record\n");
  RunFollower anew({folder.path()});
  CHECK_THROWS_WITH(anew.poll(), Catch::Contains("node2"));
}

}  // namespace farstep
