#include "trainer/report/report.h"

#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/trainer/telemetry/synthetic_run.h"
#include "trainer/base/error.h"
#include "trainer/report/html_report.h"
#include "trainer/report/report_tables.h"
#include "trainer/report/report_text.h"
#include "trainer/telemetry/figure_text.h"

namespace farstep {

namespace {

const Table::Row& row_of(const Table& table, const std::string& label) {
  for (const auto& row : table.rows) {
    if (row.cells.front() == label) return row;
  }
  FAIL("no row " << label);
  return table.rows.front();
}

// Columns that a line takes on the screen: every byte that does not continue a character.
std::size_t columns_of(const std::string& line) {
  std::size_t columns = 0;
  for (const char c : line) columns += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return columns;
}

void check_columns(const std::string& text) {
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = text.find('\n', begin);
    INFO(text.substr(begin, end - begin));
    CHECK(columns_of(text.substr(begin, end - begin)) <= kReportColumns);
    begin = end + 1;
  }
}

}  // namespace

TEST_CASE("the JSON report has the totals of the run") {
  const TemporaryFolder folder;
  SyntheticRun run;
  run.write(folder.path());
  const auto json = report_json(build_report(folder.path()));
  CHECK(json["rounds"] == 10);
  CHECK(json["wan_bytes_sent"] == 51'600'000'000);
  const auto& site = json["sites"][2];
  CHECK(site["site"] == "node3");
  CHECK(site["steps"] == 1000);
  CHECK(site["tokens"] == 4'096'000);
  CHECK(site["merged_tokens"] == 4'096'000);
  CHECK(site["compute_seconds"].get<double>() == Approx(104));
  CHECK(site["wait_seconds"].get<double>() == Approx(146));
  CHECK(site["wan_seconds"].get<double>() == Approx(15));
  CHECK(site["hidden_wan_seconds"].get<double>() == Approx(5));
  CHECK(site["other_seconds"].get<double>() == Approx(11));
  CHECK(site["idle_fraction"].get<double>() == Approx((146. + 15 + 11) / (104 + 146 + 15 + 11)));
}

TEST_CASE("the steps of a round that was not committed are computed and not merged") {
  SyntheticRun run;
  run.rounds = 2;
  run.steps = 4;
  auto records = run.records(0);
  const auto second = std::ranges::find_if(records, [](const auto& record) {
    const auto* round = std::get_if<RoundEvent>(&record.event);
    return round != nullptr && round->round == 2;
  });
  records.erase(second, records.end());
  const TemporaryFolder folder;
  write_events(folder / "node1" / "events.jsonl", records);
  const auto report = build_report(folder.path());
  const auto& site = report.sites[0];
  CHECK(site.steps == 8);
  CHECK(2 * site.merged_tokens == site.tokens);
  const auto table = work_table(report);
  CHECK(table.header[4] == "merged");
  CHECK(table.rows[0].cells[4] == table.rows[1].cells[4]);  // of the site, and of all
  CHECK(table.rows[0].cells[4] != table.rows[0].cells[3]);
}

TEST_CASE("the idle table is the paper's for the paper's step times") {
  const TemporaryFolder folder;
  SyntheticRun run;
  run.write(folder.path());
  const auto table = idle_table(build_report(folder.path()));
  CHECK(table.header ==
        std::vector<std::string>{"cause", "node1", "node2", "node3", "node4", "total", "share"});
  CHECK(row_of(table, "waiting for peers").cells ==
        std::vector<std::string>{"waiting for peers", "1.10", "0.00", "14.60", "4.90", "20.60",
                                 "18.7 %"});
  CHECK(row_of(table, "not accounted for").cells[5] == "0.00");
  for (const auto& row : table.rows) CHECK(row.cells.size() == table.header.size());
}

TEST_CASE("wall time adds up across a failure") {
  // Killed 1 s into round 2, after two steps; resumed 30 s later from the checkpoint of round 1.
  SyntheticRun run;
  run.step_seconds = {0.5};
  run.rounds = 2;
  run.steps = 4;
  const auto whole = run.records(0);
  const auto round_two = std::ranges::find_if(whole, [](const auto& record) {
    const auto* step = std::get_if<StepEvent>(&record.event);
    return step != nullptr && step->round == 2;
  });
  std::vector<Record> records(whole.begin(), round_two + 2);
  const double killed = records.back().time;
  const double resumed_by = 30 + killed - (round_two - 1)->time;
  RunEvent resumed = std::get<RunEvent>(whole.front().event);
  resumed.start_round = 1;
  records.push_back({killed + 30, whole.front().site, resumed});
  for (auto record = round_two; record != whole.end(); ++record) {
    records.push_back(*record);
    records.back().time += resumed_by;
  }
  const TemporaryFolder folder;
  write_events(folder / "whole" / "node1" / "events.jsonl", whole);
  write_events(folder / "killed" / "node1" / "events.jsonl", records);
  const auto before = build_report(folder / "whole");
  const auto after = build_report(folder / "killed");
  const auto json = report_json(after)["sites"][0];
  CHECK(json["lost_seconds"].get<double>() == Approx(resumed_by));
  CHECK(json["wall_seconds"].get<double>() == Approx(records.back().time - records.front().time));
  CHECK(json["compute_seconds"].get<double>() ==
        Approx(before.sites[0].time().total.compute_seconds));
  double sum = 0;
  for (const auto* part : {"compute_seconds", "wait_seconds", "wan_seconds", "other_seconds",
                           "lost_seconds", "unaccounted_seconds"}) {
    sum += json[part].get<double>();
  }
  CHECK(json["wall_seconds"].get<double>() == Approx(sum));
  CHECK(std::stod(row_of(idle_table(after), "lost to failures").cells[1]) ==
        Approx(resumed_by / 2).margin(0.06));
  CHECK_THAT(html_report(after), Catch::Contains("lost to failures"));
  CHECK_THAT(report_text(before) + html_report(before), !Catch::Contains("lost to failures"));
}

TEST_CASE("the traffic table tells exposed from hidden WAN time") {
  const TemporaryFolder folder;
  SyntheticRun run;
  run.write(folder.path());
  const auto table = traffic_table(build_report(folder.path()));
  CHECK(table.header[5] == "WAN exposed (s)");
  CHECK_THAT(table_text(table, kReportColumns), Catch::Contains("hidden (s)  hidden"));  // in one
  CHECK(row_of(table, "node3").cells[5] == "15.0");
  CHECK(row_of(table, "node3").cells[6] == "5.4 %");  // of 104 + 146 + 15 + 11 s
  CHECK(row_of(table, "node3").cells[7] == "5.0");
  CHECK(row_of(table, "node3").cells[8] == "25.0 %");
  CHECK(row_of(table, "total").cells[5] == "60.0");
  CHECK(row_of(table, "total").cells[7] == "20.0");
}

TEST_CASE("links are summed up over the rounds and known as they were last") {
  const TemporaryFolder folder;
  SyntheticRun run;
  run.step_seconds = {0.25, 0.5, 0.25};
  for (std::size_t site = 0; site < 3; ++site) {
    auto records = run.records(site);
    const auto end = records.back();
    records.pop_back();
    const auto add = [&](const Event& event) {
      records.push_back({end.time, run.site_name(site), event});
    };
    for (int64_t round = 1; round <= 2; ++round) {
      const double known = round == 1 ? 5e6 : 8e6;
      for (const auto& peer : {std::optional<std::string>("node9"),
                               std::optional<std::string>("node8"), std::optional<std::string>()}) {
        add(LinkEvent{round, peer, 1000, 500, 2000, 30, 0.25, known, 0.08});
      }
    }
    add(SyncChangeEvent{
        3, outer_optimizer::CodecKind::kInt4, 4, 12, {}, "int4 in 4 fragments: a slow line"});
    records.push_back(end);
    write_events(folder / run.site_name(site) / "events.jsonl", records);
  }
  const auto report = build_report(folder.path());
  const auto& link = report.sites[0].links.at("node9");
  CHECK(link.bytes_sent == 2000);
  CHECK(link.bytes_received == 1000);
  CHECK(link.bits_per_second == 8e6);
  CHECK(link.rtt_seconds == 0.08);
  CHECK(link.retransmitted_share() == Approx(60.0 / 4000));
  const auto table = link_table(report);
  REQUIRE(table.rows.size() == 9);
  CHECK(table.rows[0].cells ==
        std::vector<std::string>{"node1", "node8", "2.00 kB", "1.00 kB", "8.0", "80.0", "1.50 %"});
  CHECK(table.rows[2].cells[1] == "all");
  const auto json = report_json(report);
  CHECK(json["sites"][0]["uplink_bits_per_second"] == 8e6);
  CHECK(json["sites"][0]["links"][1]["peer"] == "node9");
  CHECK(json["sites"][0]["links"][1]["retransmitted_share"].get<double>() == Approx(0.015));
  CHECK(json["sync_changes"].size() == 1);
  CHECK(json["sync_changes"][0]["codec"] == "int4");
  CHECK_THAT(report_text(report), Catch::Contains("from round 3: int4 in 4 fragments"));
  CHECK_THAT(report_text(report), Catch::Contains("Links as the run measured them"));
}

TEST_CASE("the validation loss is the mean over the shares of all sites") {
  const TemporaryFolder folder;
  SyntheticRun run;
  run.step_seconds = {0.25, 0.5};
  run.rounds = 2;
  run.steps = 1;
  for (std::size_t site = 0; site < 2; ++site) {
    auto records = run.records(site);
    for (auto& record : records) {
      if (auto* share = std::get_if<EvaluationEvent>(&record.event)) {
        *share =
            site == 0 ? EvaluationEvent{share->round, 10, 2} : EvaluationEvent{share->round, 2, 4};
      }
    }
    write_events(folder / run.site_name(site) / "events.jsonl", records);
  }
  const auto report = build_report(folder.path());
  CHECK(report.final_loss() == 2.0);
  CHECK(report.validation_losses == std::map<int64_t, double>{{1, 2.0}, {2, 2.0}});
  const double share = report.sites[0].time().total.seconds(SpanCause::kEvaluate) /
                       report.sites[0].time().total.total_seconds();
  CHECK(share > 0);
  CHECK_THAT(report_text(report),
             Catch::Contains(fmt::format("taken 2 times in {:.1f} % of all", 100 * share)));
}

TEST_CASE("a validation that a site did not finish does not count") {
  const TemporaryFolder folder;
  SyntheticRun run;
  run.step_seconds = {0.25, 0.5};
  run.rounds = 3;
  run.steps = 1;
  for (std::size_t site = 0; site < 2; ++site) {
    auto records = run.records(site);
    if (site == 1) {
      std::erase_if(records, [](const auto& record) {
        const auto* share = std::get_if<EvaluationEvent>(&record.event);
        return share && share->round == 3;
      });
    }
    write_events(folder / run.site_name(site) / "events.jsonl", records);
  }
  CHECK(build_report(folder.path()).validation_losses.rbegin()->first == 2);
}

TEST_CASE(
    "without a validation the final loss is that of training and without rounds there is none") {
  const TemporaryFolder folder;
  SyntheticRun run;
  run.rounds = 1;
  run.step_seconds = {0.25};
  auto records = run.records(0);
  std::erase_if(records, [](const auto& record) {
    return std::holds_alternative<EvaluationEvent>(record.event);
  });
  write_events(folder / "a" / "node1" / "events.jsonl", records);
  auto report = build_report(folder / "a");
  CHECK(report.final_loss() == report.train_losses.at(1));
  records.resize(1);
  write_events(folder / "b" / "node1" / "events.jsonl", records);
  const auto json = report_json(build_report(folder / "b"));
  CHECK(json["final_loss"].is_null());
  CHECK(json["rounds"] == 0);
  CHECK(json["sites"][0]["idle_fraction"] == 0.0);
}

TEST_CASE("one site's own folder is a report too and the missing sites are noted") {
  const TemporaryFolder folder;
  const SyntheticRun run;
  run.write(folder.path());
  const auto report = build_report(folder / "node2");
  REQUIRE(report.sites.size() == 1);
  CHECK(report.sites[0].site == "node2");
  CHECK(report.notes.size() == 3);
}

TEST_CASE("sites stand in the order of their ids and not of their folders") {
  const TemporaryFolder folder;
  SyntheticRun run;
  run.rounds = 1;
  run.steps = 1;
  write_events(folder / "zz" / "events.jsonl", run.records(0));
  write_events(folder / "aa" / "events.jsonl", run.records(3));
  const auto report = build_report(folder.path());
  CHECK(report.sites[0].site == "node1");
  CHECK(report.sites[1].site == "node4");
}

TEST_CASE(
    "a folder without events is an error, and a file that does not belong there is left out") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(build_report(folder.path()), Catch::Contains(folder.path().string()));
  CHECK_THROWS_AS(build_report(folder.path()), DataError);
  CHECK_THROWS_AS(build_report(folder / "absent"), DataError);
  SyntheticRun run;
  run.rounds = run.steps = 1;
  write_events(folder / "a" / "events.jsonl", run.records(0));
  write_events(folder / "b" / "events.jsonl", run.records(0));
  const auto left_out = [&] {
    const auto report = build_report(folder.path());
    CHECK(report.sites.size() == 1);
    REQUIRE(report.unreadable.size() == 1);
    CHECK_THAT(report_text(report), Catch::Contains("note: "));
    return report.unreadable.front().reason;
  };
  CHECK_THAT(left_out(), Catch::Contains("node1"));
  run.name = "other";
  write_events(folder / "b" / "events.jsonl", run.records(1));
  CHECK_THAT(left_out(), Catch::Contains("other"));
  auto headless = run.records(0);
  headless.erase(headless.begin());
  write_events(folder / "c" / "events.jsonl", headless);
  CHECK_THROWS_WITH(build_report(folder / "c"), Catch::Contains("\"run\""));
  write_events(folder / "d" / "events.jsonl", {});
  CHECK_THROWS_AS(build_report(folder / "d"), DataError);
}

TEST_CASE("the text fits its columns for any number of sites and names every site") {
  for (const std::size_t sites : {1, 4, 9, 33}) {
    const TemporaryFolder folder;
    SyntheticRun run;
    run.step_seconds.assign(sites, 0.25);
    run.rounds = 2;
    run.steps = 2;
    run.write(folder.path());
    std::ofstream(folder / "node1" / "events.jsonl", std::ios::app) << "{";
    const auto text = report_text(build_report(folder.path()));
    check_columns(text.substr(0, text.find("note:")));
    for (std::size_t site = 0; site < sites; ++site) {
      CHECK(text.find(run.site_name(site) + " ") != text.npos);
    }
    CHECK(text.find("is unfinished") != text.npos);
    CHECK(text.find(" \n") == text.npos);
  }
}

TEST_CASE("an empty run has a report") {
  const TemporaryFolder folder;
  SyntheticRun run;
  run.rounds = 0;
  run.write(folder.path());
  check_columns(report_text(build_report(folder.path())));
}

TEST_CASE("numbers are written as people read them") {
  CHECK(count_text(0) == "0");
  CHECK(count_text(999) == "999");
  CHECK(count_text(1000) == "1,000");
  CHECK(count_text(1234567) == "1,234,567");
  CHECK(count_text(-1234) == "-1,234");
  CHECK(count_text(-123) == "-123");
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(999) == "999 B");
  CHECK(bytes_text(1000) == "1.00 kB");
  CHECK(bytes_text(12'345) == "12.3 kB");
  CHECK(bytes_text(999'600) == "1.00 MB");
  CHECK(bytes_text(1'290'000'000) == "1.29 GB");
  CHECK(bytes_text(5'160'000'000'000'000) == "5160 TB");
  CHECK(short_count_text(214'983'680) == "215.0M");
  CHECK(short_count_text(9'999) == "9999");
  CHECK(short_name("node1") == "node1");
  CHECK(short_name("a-very-long-site-7").size() == 12);
}

TEST_CASE("a table of many rounds is thinned out and keeps the last one") {
  const TemporaryFolder folder;
  SyntheticRun run;
  run.step_seconds = {0.25};
  run.rounds = 103;
  run.steps = 1;
  run.write(folder.path());
  const auto report = build_report(folder.path());
  CHECK(round_table(report, 200).rows.size() == 103);
  const auto thin = round_table(report, 10);
  CHECK(thin.rows.size() <= 11);
  CHECK(thin.rows.back().cells.front() == "103");
}

}  // namespace farstep
