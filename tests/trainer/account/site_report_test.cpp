#include "trainer/account/site_report.h"

#include <malloc.h>

#include <algorithm>
#include <iterator>
#include <random>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/trainer/telemetry/synthetic_run.h"
#include "trainer/base/error.h"
#include "trainer/report/html_report.h"
#include "trainer/series/csv.h"
#include "trainer/telemetry/abandoned.h"

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

std::vector<Record> records_of(const SiteReport& site) {
  std::vector<Record> records;
  site.visit_records([&](const Record& record) { records.push_back(record); });
  return records;
}

// All digits of the figures that a report of this site alone shows.
std::string figures_of(const SiteReport& site) {
  RunReport report;
  report.sites.push_back(site);
  report.settle();
  auto text = report_json(report).dump() + html_report(report) + csv_text(series_of(report));
  for (const auto& record : site.milestones) text += to_record(record).dump();
  return text + fmt::format("{} {} {}", site.first_seen(), site.last_seen(),
                            site.progress.activity_text());
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
      REQUIRE(text_of(records_of(site)) == text_of(kept));
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
      std::vector<Record> milestones;
      std::ranges::copy_if(kept, std::back_inserter(milestones), [](const Record& one) {
        return std::holds_alternative<RunEvent>(one.event) ||
               std::holds_alternative<ViewEvent>(one.event) ||
               std::holds_alternative<RoundEvent>(one.event);
      });
      REQUIRE(text_of(site.milestones) == text_of(milestones));
    }
  }
}

TEST_CASE("a site that forgets records has the figures of one that keeps all") {
  const TemporaryFolder folder;
  const auto path = folder / "node1" / "events.jsonl";
  std::mt19937 random(11);
  for (int trial = 0; trial < 40; ++trial) {
    const auto file = killed_site(random, trial % 5);
    write_events(path, file);
    for (const std::size_t most_recent : {2, 7, 40}) {
      SiteReport whole("node1");
      SiteReport site("node1", path, most_recent);
      for (std::size_t i = 0; i < file.size(); ++i) {
        whole.add(file[i]);
        site.add(file[i]);
        // A resume is where they may part.
        const bool is_start = std::holds_alternative<RunEvent>(file[i].event);
        if (!is_start && random() % 40 != 0 && i + 1 != file.size()) continue;
        REQUIRE(text_of(records_of(site)) == text_of(records_of(whole)));
        REQUIRE(figures_of(site) == figures_of(whole));
      }
    }
  }
}

TEST_CASE("memory grows with the rounds and not with the steps") {
  const auto heap_bytes = [] {
    const auto heap = ::mallinfo2();
    return heap.uordblks + heap.hblkhd;
  };
  if (heap_bytes() == 0) return;  // the heap of a sanitizer does not count itself
  // What a site of ten rounds holds, each with so many steps.
  const auto held_by = [&](const std::filesystem::path& file, int64_t steps) {
    const auto before = heap_bytes();
    SiteReport site("node1", file);
    site.add({0, "node1", RunEvent{}});
    double time = 0;
    for (int64_t round = 1; round <= 10; ++round) {
      site.add({time, "node1", PlanEvent{.round = round, .local_steps = steps}});
      for (int64_t step = 1; step <= steps; ++step) {
        site.add({time + 1, "node1",
                  StepEvent{.round = round, .step = step, .start = time, .seconds = 1, .loss = 1}});
        ++time;
      }
      RoundEvent done;
      done.round = round;
      done.local_steps = steps;
      site.add({time, "node1", done});
    }
    REQUIRE(site.steps == 10 * steps);
    return static_cast<double>(heap_bytes() - before);
  };
  constexpr double kMiB = 1 << 20;
  const double few = held_by("events.jsonl", 2'000);
  const double many = held_by("events.jsonl", 20'000);
  CHECK(held_by("", 20'000) > 40 * kMiB);
  CHECK(few < 8 * kMiB);
  // The timeline's stretches grow with the logarithm.
  CHECK(many < few + 2 * kMiB);
}

TEST_CASE("a site whose file lost records says so when it must read it again") {
  const TemporaryFolder folder;
  const auto path = folder / "node1" / "events.jsonl";
  SyntheticRun run;
  run.rounds = 2;
  run.steps = 5;
  const auto records = run.records(0);
  write_events(path, records);
  SiteReport site("node1", path, 4);
  for (const auto& record : records) site.add(record);
  write_events(path, {records.front()});
  CHECK_THROWS_AS(records_of(site), DataError);
  auto start = std::get<RunEvent>(records.front().event);
  start.start_step = 1;
  CHECK_THROWS_WITH(site.add({1e10, "node1", start}), Catch::Contains(path.string()));
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
