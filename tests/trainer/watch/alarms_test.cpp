#include "trainer/watch/alarms.h"

#include "tests/support/catch.h"
#include "tests/trainer/watch/watched_run.h"

namespace farstep {

namespace {

std::vector<std::string> texts_of(const std::vector<Alarm>& alarms) {
  std::vector<std::string> texts;
  for (const auto& alarm : alarms) texts.push_back(alarm.text);
  return texts;
}

// The records of both sites without their last `count` ones.
std::vector<std::vector<Record>> under_way(std::size_t count) {
  const auto run = watched_run();
  auto sites = std::vector{run.records(0), run.records(1)};
  for (auto& records : sites) records.resize(records.size() - count);
  return sites;
}

// A site of one round each with these training losses.
std::vector<Record> site_with_losses(const std::vector<double>& losses) {
  std::vector<Record> records = {{0, "a", RunEvent{}}};
  for (std::size_t i = 0; i < losses.size(); ++i) {
    RoundEvent round;
    round.round = static_cast<int64_t>(i) + 1;
    round.tokens = 1;
    round.train_loss = losses[i];
    records.push_back({static_cast<double>(i), "a", round});
  }
  return records;
}

std::vector<Record> site_with_speeds(const std::vector<double>& speeds) {
  std::vector<Record> records = {{0, "a", RunEvent{}}};
  for (std::size_t i = 0; i < speeds.size(); ++i) {
    records.push_back(
        {static_cast<double>(i), "a",
         LinkEvent{
             .round = static_cast<int64_t>(i) + 1, .peer = "b", .bits_per_second = speeds[i]}});
  }
  return records;
}

}  // namespace

TEST_CASE("a run that went well has no alarms during it or long after") {
  const auto run = watched_run();
  const auto report = report_of({run.records(0), run.records(1)});
  CHECK(is_over(report));
  CHECK(alarms_of(report, run.start).empty());
  CHECK(alarms_of(report, run.start + 1e6).empty());
}

TEST_CASE("a site that trains and writes nothing is gone and one that waits is not") {
  const auto run = watched_run();
  auto sites = under_way(0);
  sites[0].resize(3);  // run, plan, one step of two
  sites[1].resize(4);  // both steps: it waits
  const auto report = report_of(sites);
  const double last = sites[0].back().time;
  CHECK(alarms_of(report, last + 60).empty());
  const auto alarms = alarms_of(report, last + 70);
  REQUIRE(alarms.size() == 1);
  CHECK(alarms[0].kind == AlarmKind::kSiteGone);
  CHECK(alarms[0].subject == "node1");
  CHECK(alarms[0].text == "node1 has recorded nothing for 70 s");
}

TEST_CASE("a site whose clock is wrong is silent by the coordinator's") {
  const auto run = watched_run();
  for (const double behind_seconds : {300.0, -300.0}) {
    INFO(behind_seconds);
    auto sites = std::vector{run.records(0), run.records(1, behind_seconds)};
    sites[0].resize(4);  // both steps: it waits
    sites[1].resize(3);  // run, plan, one step of two
    const auto report = report_of(sites);
    const double last = sites[1].back().time + behind_seconds;
    CHECK(alarms_of(report, last + 5).empty());
    const auto alarms = alarms_of(report, last + 70);
    REQUIRE(alarms.size() == 1);
    CHECK(alarms[0].text == "node2 has recorded nothing for 70 s");
  }
}

TEST_CASE("a site that the others have lost is gone until it is back") {
  auto sites = under_way(1);
  const double time = sites[0].back().time;
  ViewEvent view{.round = 4,
                 .generation = 2,
                 .members = {"node1"},
                 .lost = "node2",
                 .joined = {},
                 .reason = "silent for 5 s"};
  sites[0].push_back({time, "node1", view});
  CHECK(texts_of(alarms_of(report_of(sites), time)) ==
        std::vector<std::string>{"node2 was lost (silent for 5 s) and has not come back"});
  view = {.round = 5,
          .generation = 3,
          .members = {"node1", "node2"},
          .lost = {},
          .joined = "node2",
          .reason = {}};
  sites[0].push_back({time, "node1", view});
  CHECK(alarms_of(report_of(sites), time).empty());
}

TEST_CASE("a site that failed is gone with its reason and one that was interrupted is not") {
  for (const auto outcome : {Outcome::kFailed, Outcome::kPeerLost}) {
    auto sites = under_way(1);
    sites[1].push_back({sites[1].back().time, "node2", EndEvent{outcome, "out of memory"}});
    CHECK(texts_of(alarms_of(report_of(sites), 0)) ==
          std::vector<std::string>{"node2 has ended: out of memory"});
  }
  auto sites = under_way(1);
  sites[1].push_back({sites[1].back().time, "node2", EndEvent{Outcome::kInterrupted, "x"}});
  CHECK(alarms_of(report_of(sites), 0).empty());
}

TEST_CASE("a link is slow if it has less than half of what it usually has") {
  const auto alarms_after = [](const std::vector<double>& speeds) {
    return alarms_of(report_of({site_with_speeds(speeds)}), 0);
  };
  CHECK(alarms_after({8e6, 8e6, 8e6, 3e6}).empty());  // too few to know
  CHECK(alarms_after({8e6, 9e6, 8e6, 8e6, 4.1e6}).empty());
  const auto alarms = alarms_after({8e6, 9e6, 8e6, 8e6, 3e6});
  REQUIRE(alarms.size() == 1);
  CHECK(alarms[0].subject == "a to b");
  CHECK(alarms[0].text == "the link from a to b has 3.0 Mbit/s, usually 8.0 Mbit/s");
  CHECK(alarms_after({8e6, 9e6, 8e6, 8e6, 3e6, 8e6}).empty());
}

TEST_CASE("the loss rises if the mean of three is 5 % above the least before") {
  const auto alarms_after = [](const std::vector<double>& losses) {
    return texts_of(alarms_of(report_of({site_with_losses(losses)}), 0));
  };
  CHECK(alarms_after({}).empty());
  CHECK(alarms_after({4, 5, 6}).empty());
  CHECK(alarms_after({6, 5, 4, 4, 4, 4.2, 4.2, 4.2}).empty());
  CHECK(alarms_after({6, 5, 4, 4, 4, 4, 4, 5}) ==
        std::vector<std::string>{
            "the training loss rises: 4.333 over the last 3 values, 4.000 before"});
  CHECK(alarms_after({6, 5, 4, 4, 4, 4, 4, 5, 4, 4, 4}).empty());
}

TEST_CASE("a delta that was left out is an alarm for ten rounds, of its newest round") {
  auto sites = under_way(1);
  const double time = sites[0].back().time;
  const auto alarms = [&](int64_t round, bool is_left_out) {
    auto records = sites;
    for (auto& site : records) {
      for (const int64_t of : {round - 1, round}) {
        site.push_back({time, site.front().site,
                        OutlierEvent{.round = of,
                                     .fragment = 0,
                                     .delta_of = "node2",
                                     .is_left_out = is_left_out,
                                     .reason = "has a value of 1e+30"}});
      }
    }
    return alarms_of(report_of(records), time);
  };
  const int64_t done = report_of(sites).rounds_done;
  const auto found = alarms(done, true);
  REQUIRE(found.size() == 1);
  CHECK(found[0].kind == AlarmKind::kBadDelta);
  CHECK(found[0].subject == "node2");
  CHECK_THAT(found[0].text, Catch::StartsWith(fmt::format(
                                "the delta of node2 in round {} has a value of 1e+30", done)));
  CHECK(alarms(done, false).empty());
  CHECK(alarms(done - 10, true).empty());
}

}  // namespace farstep
