#include "trainer/watch/prometheus.h"

#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "tests/support/catch.h"
#include "tests/trainer/watch/watched_run.h"

namespace farstep {

namespace {

struct Sample {
  std::string name, labels;
  double value;
};

// Reads the text by the grammar of the format, and checks the order of a metric's parts.
std::vector<Sample> samples_of(const std::string& text) {
  static const std::regex kSample(
      R"re(([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)*\})? (\S+))re");
  std::vector<Sample> samples;
  std::set<std::string> begun;
  std::string metric;
  std::istringstream lines(text);
  REQUIRE(text.ends_with('\n'));
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    if (line.starts_with("# HELP ")) {
      metric = line.substr(7, line.find(' ', 7) - 7);
      REQUIRE(begun.insert(metric).second);  // its samples stand together
      continue;
    }
    if (line.starts_with("# TYPE ")) {
      const bool is_counter = metric.ends_with("_total");
      REQUIRE(line == "# TYPE " + metric + (is_counter ? " counter" : " gauge"));
      continue;
    }
    std::smatch match;
    REQUIRE(std::regex_match(line, match, kSample));
    REQUIRE(match[1] == metric);
    samples.push_back({match[1], match[2], std::stod(match[3])});
  }
  return samples;
}

double value_of(const std::vector<Sample>& samples, const std::string& name,
                const std::string& labels = "") {
  for (const auto& sample : samples) {
    if (sample.name == name && sample.labels == labels) return sample.value;
  }
  FAIL("no sample " << name << labels);
  return 0;
}

}  // namespace

TEST_CASE("the metrics are in the format and have the figures of the report") {
  const auto run = watched_run();
  auto records = run.records(0);
  records.push_back(
      {records.back().time, "node1",
       LinkEvent{.round = 4, .peer = "node2", .bytes_sent = 77, .rtt_seconds = 0.25}});
  const auto report = report_of({records, run.records(1, 300)});
  const std::vector<Alarm> alarms = {{AlarmKind::kSlowLink, "a to b", "slow"},
                                     {AlarmKind::kSlowLink, "b to a", "slow"}};
  const auto samples = samples_of(prometheus_text(report, alarms));
  std::set<std::string> seen;
  for (const auto& sample : samples) CHECK(seen.insert(sample.name + sample.labels).second);
  CHECK(value_of(samples, "farstep_rounds_done") == 4);
  CHECK(value_of(samples, "farstep_validation_loss") == report.final_loss());
  for (const auto& site : report.sites) {
    const auto label = "{site=\"" + site.site + "\"}";
    CHECK(value_of(samples, "farstep_site_steps_total", label) == 8);
    CHECK(value_of(samples, "farstep_site_tokens_total", label) ==
          static_cast<double>(site.tokens));
    CHECK(value_of(samples, "farstep_site_compute_seconds_total", label) ==
          site.time().total.compute_seconds);
    CHECK(value_of(samples, "farstep_site_idle_seconds_total",
                   "{site=\"" + site.site + "\",cause=\"wait\"}") ==
          site.time().total.seconds(SpanCause::kWait));
  }
  // In the coordinator's time, though the second site's clock is behind it.
  for (const char* label : {"{site=\"node1\"}", "{site=\"node2\"}"}) {
    CHECK(value_of(samples, "farstep_site_last_record_timestamp_seconds", label) -
              records.back().time ==
          Approx(0).margin(1e-3));
  }
  const std::string link = "{site=\"node1\",peer=\"node2\"}";
  CHECK(value_of(samples, "farstep_link_sent_bytes_total", link) == 77);
  CHECK(value_of(samples, "farstep_link_round_trip_seconds", link) == 0.25);
  CHECK_FALSE(seen.contains("farstep_link_bits_per_second" + link));  // not measured
  CHECK(value_of(samples, "farstep_alarms", "{kind=\"slow_link\"}") == 2);
  CHECK(value_of(samples, "farstep_alarms", "{kind=\"site_gone\"}") == 0);
}

TEST_CASE("any name of a run or site gives labels in the format") {
  auto run = watched_run();
  run.name = "a \"b\" \\ c\nd, e=\"f\"} 1";
  const auto text = prometheus_text(report_of({run.records(0)}), {});
  samples_of(text);
  CHECK_THAT(text, Catch::Contains(R"(run="a \"b\" \\ c\nd, e=\"f\"} 1")"));
}

}  // namespace farstep
