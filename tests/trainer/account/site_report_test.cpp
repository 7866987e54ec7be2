#include "trainer/account/site_report.h"

#include <random>

#include "tests/support/catch.h"
#include "tests/trainer/telemetry/synthetic_run.h"
#include "trainer/telemetry/event_log.h"

namespace farstep {

namespace {

int64_t round_of(const Event& event) {
  return std::visit(
      [](const auto& body) -> int64_t {
        if constexpr (requires { body.round; }) return body.round;
        return 0;
      },
      event);
}

// The records of a site whose process is killed and goes on from checkpoints, `kills` times.
std::vector<Record> killed_site(std::mt19937& random, int kills) {
  SyntheticRun run;
  run.step_seconds = {0.25};
  run.rounds = 6;
  run.steps = 3;
  const auto whole = run.records(0);
  std::vector<Record> records = whole;
  for (int i = 0; i < kills; ++i) {
    records.resize(1 + random() % records.size());
    int64_t done = 0;
    for (const auto& record : records) {
      if (std::holds_alternative<CheckpointEvent>(record.event)) done = round_of(record.event);
    }
    auto start = std::get<RunEvent>(whole.front().event);
    start.start_round = random() % 4 == 0 ? 0 : done;
    const double outage = 1 + static_cast<double>(random() % 100);
    const double shift = records.back().time + outage - whole.front().time;
    records.push_back({whole.front().time + shift, run.site_name(0), start});
    for (std::size_t k = 1; k < whole.size(); ++k) {
      if (round_of(whole[k].event) > start.start_round ||
          std::holds_alternative<EndEvent>(whole[k].event)) {
        records.push_back(whole[k]);
        records.back().time += shift;
      }
    }
  }
  return records;
}

std::string text_of(const std::vector<Record>& records) {
  std::string text;
  for (const auto& record : records) text += to_record(record).dump() + "\n";
  return text;
}

}  // namespace

TEST_CASE("counting record by record is counting what without_abandoned() keeps") {
  std::mt19937 random(7);
  for (int trial = 0; trial < 60; ++trial) {
    const auto file = killed_site(random, trial % 4);
    SiteReport site("node1");
    std::vector<Record> read;
    for (const auto& record : file) {
      site.add(record);
      read.push_back(record);
      // At each moment, not only at the end: a page shows all of them.
      if (random() % 5 != 0 && read.size() != file.size()) continue;
      const auto kept = without_abandoned(read);
      REQUIRE(text_of(site.records) == text_of(kept));
      const auto time = account_time(kept);
      REQUIRE(site.time().total.compute_seconds == Approx(time.total.compute_seconds));
      REQUIRE(site.time().total.idle_seconds() == Approx(time.total.idle_seconds()));
      REQUIRE(site.time().rounds.size() == time.rounds.size());
      REQUIRE(site.time().wall_seconds - site.time().lost_seconds == Approx(time.wall_seconds));
      int64_t steps = 0, tokens = 0, sent = 0, commits = 0;
      for (const auto& one : kept) {
        if (const auto* step = std::get_if<StepEvent>(&one.event)) {
          ++steps;
          tokens += step->tokens;
        } else if (const auto* round = std::get_if<RoundEvent>(&one.event)) {
          ++commits;
          sent += round->wan_bytes_sent;
        }
      }
      REQUIRE(site.steps == steps);
      REQUIRE(site.tokens == tokens);
      REQUIRE(site.rounds_worked == commits);
      REQUIRE(static_cast<int64_t>(site.rounds.size()) == commits);
      REQUIRE(site.traffic.wan_bytes_sent == sent);
      SiteProgress progress("node1");
      for (const auto& one : kept) progress.update(one);
      REQUIRE(site.progress.activity() == progress.activity());
      REQUIRE(site.progress.round() == progress.round());
      REQUIRE(site.progress.step() == progress.step());
      for (const auto milestone : site.milestones) {
        const auto& event = site.records.at(milestone).event;
        REQUIRE((std::holds_alternative<RunEvent>(event) ||
                 std::holds_alternative<ViewEvent>(event) ||
                 std::holds_alternative<RoundEvent>(event)));
      }
    }
  }
}

TEST_CASE("a link keeps its newest speed and all that it had") {
  SiteReport site("a");
  site.add({1, "a", RunEvent{}});
  for (const int64_t round : {1, 2, 3}) {
    LinkEvent link{.round = round, .peer = "b", .bytes_sent = 10};
    if (round != 2) link.bits_per_second = 1e6 * static_cast<double>(round);
    site.add({1 + static_cast<double>(round), "a", link});
  }
  const auto& link = site.links.at("b");
  CHECK(link.bytes_sent == 30);
  CHECK(link.bits_per_second == 3e6);
  CHECK(link.speeds == std::vector<double>{1e6, 3e6});
}

}  // namespace farstep
