#include "trainer/account/run_follower.h"

#include <fstream>
#include <random>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/trainer/telemetry/synthetic_run.h"
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

TEST_CASE("the folder of the coordinator's site has the whole run, by its copies") {
  const TemporaryFolder whole, host;
  const auto run = small_run();
  run.write(whole.path());
  const auto expected = report_json(build_report(whole.path()));
  const auto text_of = [&](std::size_t site) {
    return read_file(whole / run.site_name(site) / "events.jsonl");
  };
  append(host / "node1" / "events.jsonl", text_of(0));
  CHECK(build_report(host.path()).sites.size() == 1);
  // A copy is behind its file, and may have nothing of one yet.
  append(host / "node1" / "all_sites" / "node1" / "events.jsonl",
         text_of(0).substr(0, text_of(0).find('\n') + 1));
  append(host / "node1" / "all_sites" / "node2" / "events.jsonl", text_of(1));
  append(host / "node1" / "all_sites" / "node3" / "events.jsonl", text_of(2).substr(0, 20));
  RunFollower follower({host.path()});
  follower.poll();
  CHECK(follower.report()->sites.size() == 2);
  append(host / "node1" / "all_sites" / "node3" / "events.jsonl", text_of(2).substr(20));
  for (const auto& folder : {host.path(), host / "node1"}) {
    CHECK(report_json(build_report(folder)) == expected);
  }
  follower.poll();
  CHECK(report_json(*follower.report()) == expected);
  // The site's own file takes the place of its copy.
  append(host / "node2" / "events.jsonl", text_of(1));
  follower.poll();
  CHECK(report_json(*follower.report()) == expected);
  CHECK(follower.unreadable().empty());
  // A folder that was fetched has any name.
  fs::rename(host / "node1", host / "fetched");
  CHECK(report_json(build_report(host / "fetched")) == expected);
}

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

TEST_CASE("an unreadable file is told, and the other sites are reported without it") {
  const TemporaryFolder folder;
  const auto run = small_run();
  run.write(folder.path());
  const auto file = folder / "node2" / "events.jsonl";
  const auto text = read_file(file);
  const auto parts_of_others = [&](const RunFollower& follower) {
    Json parts = Json::array();
    const auto report = report_json(*follower.report());
    for (const auto& site : report["sites"]) {
      if (site["site"] != "node2") parts.push_back(site);
    }
    return parts;
  };
  RunFollower follower({folder.path()});
  CHECK(follower.poll());
  CHECK(follower.unreadable().empty());
  const auto whole = report_json(*follower.report());
  const auto others = parts_of_others(follower);

  fs::resize_file(file, 100);
  CHECK(follower.poll());
  REQUIRE(follower.unreadable().size() == 1);
  const auto shorter = follower.unreadable().front();
  CHECK(shorter.path == file);
  CHECK(shorter.site == "node2");
  CHECK_THAT(shorter.reason, Catch::Contains(file.string()) && Catch::Contains("shorter"));
  REQUIRE(follower.report()->sites.size() == 2);
  CHECK(parts_of_others(follower) == others);
  REQUIRE(follower.report()->notes.size() == 1);
  CHECK_THAT(follower.report()->notes.front(), Catch::Contains("node2: " + shorter.reason));

  // It stays out, whatever comes to it, until it is read anew.
  append(file, "not a record\n");
  CHECK_FALSE(follower.poll());
  CHECK(follower.unreadable() == std::vector{shorter});
  follower.retry();
  CHECK(follower.poll());
  REQUIRE(follower.unreadable().size() == 1);
  CHECK_THAT(follower.unreadable().front().reason, Catch::Contains("not an event record"));
  CHECK(follower.report()->sites.size() == 2);

  // A report is of the others too, and says so.
  const auto report = build_report(folder.path());
  CHECK(report.sites.size() == 2);
  REQUIRE(report.notes.size() == 1);
  CHECK_THAT(report.notes.front(), Catch::Contains("node2: " + file.string()));
  const auto unreadable = report_json(report)["unreadable"];
  REQUIRE(unreadable.size() == 1);
  CHECK(unreadable[0]["site"] == "node2");
  CHECK(unreadable[0]["file"] == file.string());
  CHECK_THAT(unreadable[0]["reason"].get<std::string>(), Catch::Contains("not an event record"));

  fs::resize_file(file, 0);
  append(file, text);
  follower.retry();
  CHECK(follower.poll());
  CHECK(follower.unreadable().empty());
  CHECK(report_json(*follower.report()) == whole);
}

TEST_CASE("an unreadable file is named before any site can be shown") {
  const TemporaryFolder folder;
  append(folder / "node1" / "events.jsonl", "{}\n");
  RunFollower follower({folder.path()});
  CHECK(follower.poll());
  CHECK(follower.report() == nullptr);
  REQUIRE(follower.unreadable().size() == 1);
  CHECK(follower.unreadable().front().site == "node1");
  CHECK_FALSE(follower.poll());
  // A report would have no site.
  CHECK_THROWS_WITH(build_report(folder.path()), Catch::Contains("not an event record"));
}

TEST_CASE("of two runs in a folder the one with the newest record is shown") {
  const TemporaryFolder folder;
  const auto before = small_run();
  auto run = small_run();
  run.name = "next";
  run.start = before.start + 1e6;
  write_events(folder / "a" / "events.jsonl", before.records(0));
  write_events(folder / "b" / "events.jsonl", run.records(1));
  RunFollower follower({folder.path()});
  CHECK(follower.poll());
  CHECK(follower.report()->run == "next");
  REQUIRE(follower.unreadable().size() == 1);
  CHECK(follower.unreadable().front().site == "node1");
  CHECK_THAT(follower.unreadable().front().reason,
             Catch::Contains((folder / "a").string()) && Catch::Contains("next"));
  CHECK_FALSE(follower.poll());
  follower.retry();
  CHECK_FALSE(follower.poll());
  const auto report = build_report(folder.path());
  CHECK(report.run == "next");
  REQUIRE(report.unreadable.size() == 1);
  CHECK_THAT(report.unreadable.front().reason, Catch::Contains("one folder is for one run"));
}

TEST_CASE("a second file of a site takes nothing from the first") {
  const TemporaryFolder folder;
  const auto run = small_run();
  write_events(folder / "a" / "events.jsonl", run.records(0));
  RunFollower follower({folder.path()});
  follower.poll();
  const auto alone = report_json(*follower.report());
  write_events(folder / "b" / "events.jsonl", run.records(0));
  CHECK(follower.poll());
  REQUIRE(follower.unreadable().size() == 1);
  CHECK_THAT(follower.unreadable().front().reason, Catch::Contains("node1"));
  auto both = report_json(*follower.report());
  CHECK(both["unreadable"].size() == 1);
  both["unreadable"] = Json::array();
  CHECK(both == alone);
}

}  // namespace farstep
