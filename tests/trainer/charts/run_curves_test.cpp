#include "trainer/charts/run_curves.h"

#include "tests/support/catch.h"
#include "tests/trainer/watch/watched_run.h"

namespace farstep {

namespace {

Json chart(const Json& curves, const std::string& id) {
  const auto& charts = curves["charts"];
  const auto found =
      std::ranges::find_if(charts, [&](const Json& chart) { return chart["id"] == id; });
  REQUIRE(found != charts.end());
  return *found;
}

// Gives each step a norm and a rate that grow with its site's number.
std::vector<Record> with_figures(std::vector<Record> records, double factor) {
  for (auto& record : records) {
    auto* step = std::get_if<StepEvent>(&record.event);
    if (step == nullptr) continue;
    step->loss = factor * static_cast<double>(10 * step->round + step->step);
    step->gradient_norm = 2 * *step->loss;
    step->learning_rate = 0.001 * factor;
  }
  return records;
}

RunReport made_up_report() {
  const auto run = watched_run();
  return report_of({with_figures(run.records(0), 1), with_figures(run.records(1), 3)});
}

}  // namespace

TEST_CASE("a run has a curve for each site, and its validation is marked") {
  const auto report = made_up_report();
  const auto charts = curves_of_run(report);
  const Json losses = chart(charts, "loss")["curves"];
  REQUIRE(losses.size() == 3);
  CHECK(losses[0]["name"] == "node1");
  CHECK(losses[0]["kind"] == "site-0");
  CHECK(losses[0]["points"] ==
        Json::parse("[[0.5,11],[1,12],[1.5,21],[2,22],[2.5,31],[3,32],[3.5,41],[4,42]]"));
  CHECK(losses[2]["is_marked"] == true);
  CHECK(losses[2]["kind"] == "validation");
  CHECK(losses[2]["points"].size() == report.validation_losses.size());
  const Json norms = chart(charts, "gradient_norm")["curves"];
  REQUIRE(norms.size() == 2);
  CHECK(norms[1]["points"][0] == Json::parse("[0.5,66]"));
  CHECK(chart(charts, "learning_rate")["curves"][1]["points"][7] == Json::parse("[4,0.003]"));
  // Images alone have an accuracy.
  CHECK(std::ranges::none_of(charts["charts"],
                             [](const Json& each) { return each["id"] == "accuracy"; }));
}

TEST_CASE("the speed of a round is its tokens by all of its time") {
  const auto report = made_up_report();
  const auto& site = report.sites[1];
  const Json speeds = chart(curves_of_run(report), "tokens_per_second")["curves"][1]["points"];
  REQUIRE(speeds.size() == site.rounds.size());
  for (std::size_t i = 0; i < site.rounds.size(); ++i) {
    const auto& round = site.rounds[i];
    const double seconds = site.time().rounds.at(round.round).total_seconds();
    CHECK(speeds[i][0] == round.round);
    CHECK(speeds[i][1].get<double>() ==
          Approx(static_cast<double>(round.tokens) / seconds).epsilon(1e-4));
  }
}

TEST_CASE("several runs have means over steps and sites, and sums of the speeds") {
  const std::vector reports{made_up_report(), made_up_report()};
  const std::vector<std::string> names{"a", "b"};
  const auto charts = curves_of_runs(reports, names);
  const Json losses = chart(charts, "loss")["curves"];
  REQUIRE(losses.size() == 4);  // two lines of each run
  CHECK(losses[1]["name"] == "a, validation");
  CHECK(losses[2]["name"] == "b");
  CHECK(losses[2]["kind"] == "site-1");
  // The sites train on as many tokens.
  const auto& sites = reports[0].sites;
  CHECK(
      losses[0]["points"][1][1].get<double>() ==
      Approx((*sites[0].rounds[1].train_loss + *sites[1].rounds[1].train_loss) / 2).epsilon(1e-4));
  // Steps of 22 and 24 at the first site, of 66 and 72 at the second.
  CHECK(chart(charts, "gradient_norm")["curves"][0]["points"][0] == Json::parse("[1,46]"));
  const Json own = chart(curves_of_run(reports[0]), "tokens_per_second")["curves"];
  CHECK(chart(charts, "tokens_per_second")["curves"][1]["points"][2][1].get<double>() ==
        Approx(own[0]["points"][2][1].get<double>() + own[1]["points"][2][1].get<double>())
            .epsilon(1e-4));
}

// A site's points are means over parts of its own length, so few rounds have points of both.
TEST_CASE("a long run has means over all of its sites everywhere") {
  auto run = watched_run();
  run.rounds = 4100;
  auto second = with_figures(run.records(1), 3);
  std::erase_if(second, [](const Record& record) {
    const auto* step = std::get_if<StepEvent>(&record.event);
    return step != nullptr && step->step == 2;
  });
  const std::vector reports{report_of({with_figures(run.records(0), 1), second}), made_up_report()};
  const std::vector<std::string> names{"long", "short"};
  const Json rates = chart(curves_of_runs(reports, names), "learning_rate")["curves"][0]["points"];
  CHECK(rates.size() == 4100 / 11 + 1);
  for (const auto& point : rates) CHECK(point[1] == 0.002);
}

TEST_CASE("runs of images have their accuracy in percent beside runs that have none") {
  const auto run = watched_run();
  auto records = run.records(0);
  std::get<RunEvent>(records.front().event).sites = {"node1"};
  std::get<RunEvent>(records.front().event).unit = "images";
  for (auto& record : records) {
    if (auto* share = std::get_if<EvaluationEvent>(&record.event)) share->hits = 250 * share->round;
  }
  const std::vector reports{made_up_report(), report_of({records})};
  const auto curves = curves_of_runs(reports, std::vector<std::string>{"words", "pictures"});
  CHECK(curves["unit"] == "tokens or images");
  const Json accuracies = chart(curves, "accuracy")["curves"];
  REQUIRE(accuracies.size() == 1);
  CHECK(accuracies[0]["name"] == "pictures, validation");
  CHECK(accuracies[0]["run"] == 1);
  CHECK(accuracies[0]["points"] == Json::parse("[[1,25],[2,50],[3,75],[4,100]]"));
}

TEST_CASE("the progress of a run is what its sites had done when a round was committed first") {
  const auto run = watched_run();
  const auto report = made_up_report();
  const auto curves = curves_of_run(report);
  CHECK(curves["unit"] == "tokens");
  REQUIRE(curves["progress"].size() == 1);
  const auto progress = curves["progress"][0];
  REQUIRE(progress.size() == 5);
  CHECK(progress[0] == Json::parse("[0,0,0]"));
  int64_t tokens = 0;
  for (std::size_t i = 1; i < 5; ++i) {
    double first = std::numeric_limits<double>::infinity();
    for (std::size_t site = 0; site < 2; ++site) {
      for (const auto& record : run.records(site)) {
        const auto* round = std::get_if<RoundEvent>(&record.event);
        if (round == nullptr || round->round != static_cast<int64_t>(i)) continue;
        tokens += round->tokens;
        first = std::min(first, record.time);
      }
    }
    CHECK(progress[i][0] == i);
    CHECK(progress[i][1] == tokens);
    CHECK(progress[i][2].get<double>() ==
          Approx(first - run.records(0).front().time).epsilon(1e-4));
  }
  // A long run has some of its rounds, and the last one.
  auto long_run = watched_run();
  long_run.rounds = 1001;
  const auto some = curves_of_run(report_of({long_run.records(0)}))["progress"][0];
  CHECK(some.size() == 1 + 1001 / 3 + 1);
  CHECK(some.back()[0] == 1001);
}

TEST_CASE("counts of different things say so") {
  auto run = watched_run();
  auto images = run.records(0);
  std::get<RunEvent>(images.front().event).unit = "images";
  const std::vector both{report_of({run.records(0)}), report_of({images})};
  CHECK(unit_of(std::span(both).first(1)) == "tokens");
  CHECK(unit_of(std::span(both).last(1)) == "images");
  CHECK(unit_of(both) == "tokens or images");
}

TEST_CASE("a run without a round has charts without curves") {
  auto run = watched_run();
  run.rounds = 0;
  const auto curves = curves_of_run(report_of({run.records(0)}));
  for (const auto& chart : curves["charts"]) CHECK(chart["curves"].empty());
  CHECK(curves["progress"] == Json::parse("[[[0,0,0]]]"));
}

}  // namespace farstep
