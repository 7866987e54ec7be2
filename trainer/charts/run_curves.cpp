#include "trainer/charts/run_curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "trainer/report/page_style.h"
#include "trainer/report/svg_chart.h"

namespace farstep {

namespace {

using ByRound = std::map<int64_t, double>;

// The charts, in the order of the page.
enum ChartKind { kLoss, kAccuracy, kLearningRate, kGradientNorm, kSpeed };
constexpr std::size_t kCharts = 5;

struct Curve {
  std::string name;
  std::size_t run = 0;
  std::string kind;
  Points points;
  bool is_marked = false;
};
using Charts = std::array<std::vector<Curve>, kCharts>;

// A figure of the steps with the chart that shows it.
struct StepFigure {
  ChartKind chart;
  double StepPoint::*value;
};
constexpr StepFigure kStepLoss{kLoss, &StepPoint::loss};
constexpr StepFigure kStepRate{kLearningRate, &StepPoint::learning_rate};
constexpr StepFigure kStepNorm{kGradientNorm, &StepPoint::gradient_norm};

// Five digits are more than pixels show, and a third of the bytes.
double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double scale = std::pow(10.0, 4 - std::floor(std::log10(std::abs(value))));
  return std::isfinite(scale) && scale > 0 ? std::round(value * scale) / scale : value;
}

Points points_of(const ByRound& figures) {
  return {figures.begin(), figures.end()};
}

// The tokens a second of a site in the rounds that it has committed.
ByRound speeds(const SiteReport& site) {
  ByRound speeds;
  for (const auto& round : site.rounds) {
    const auto use = site.time().rounds.find(round.round);
    if (use == site.time().rounds.end() || !(use->second.total_seconds() > 0)) continue;
    speeds[round.round] = static_cast<double>(round.tokens) / use->second.total_seconds();
  }
  return speeds;
}

// The means of a figure of the steps over those of a round, and then over the sites. In a long run
// over some rounds, as the points of a site are means over several then: of other rounds than those
// of another site.
ByRound means_by_round(const RunReport& report, double StepPoint::*value) {
  struct Sum {
    double sum = 0, count = 0;
    void add(double addend) {
      sum += addend;
      ++count;
    }
  };
  constexpr auto kMost = static_cast<int64_t>(kMostCurvePoints);
  const int64_t width = std::max<int64_t>(1, (report.rounds_done + kMost - 1) / kMost);
  std::map<int64_t, Sum> of_run;  // by number of the part of the run, from 1
  for (const auto& site : report.sites) {
    std::map<int64_t, Sum> of_site;
    for (const auto& point : site.curve.points()) {
      if (!std::isfinite(point.*value)) continue;
      const auto round = static_cast<int64_t>(std::ceil(point.rounds));
      of_site[(round + width - 1) / width].add(point.*value);
    }
    for (const auto& [part, sum] : of_site) of_run[part].add(sum.sum / sum.count);
  }
  ByRound means;
  for (const auto& [part, sum] : of_run) means[part * width] = sum.sum / sum.count;
  return means;
}

Json curve_json(const Curve& curve) {
  Json points = Json::array();
  for (const auto& [x, y] : thinned(curve.points)) points.push_back({rounded(x), rounded(y)});
  return {{"name", curve.name},
          {"run", curve.run},
          {"kind", curve.kind},
          {"is_marked", curve.is_marked},
          {"points", std::move(points)}};
}

// A round is done when the first site has committed it. Values between the points lie on lines, so
// some rounds suffice.
Json progress_json(const RunReport& report) {
  struct Done {
    int64_t tokens = 0;
    double time = std::numeric_limits<double>::infinity();
  };
  std::map<int64_t, Done> rounds;
  double begin = report.sites.front().first_seen();
  for (const auto& site : report.sites) {
    begin = std::min(begin, site.first_seen());
    for (const auto& round : site.rounds) rounds[round.round].tokens += round.tokens;
    for (const auto& milestone : site.milestones) {
      const auto* round = std::get_if<RoundEvent>(&milestone.event);
      if (round == nullptr) continue;
      auto& time = rounds[round->round].time;
      time = std::min(time, milestone.time);
    }
  }
  const std::size_t every = (rounds.size() + kMostCurvePoints - 1) / kMostCurvePoints;
  Json progress = Json::array({Json::array({0, 0, 0})});
  int64_t tokens = 0;
  double seconds = 0;
  std::size_t index = 0;
  for (const auto& [number, done] : rounds) {
    tokens += done.tokens;
    // Clocks differ a little, and a curve cannot go back.
    seconds = std::max(seconds, done.time - begin);
    if (++index % every == 0 || index == rounds.size()) {
      progress.push_back({number, tokens, rounded(seconds)});
    }
  }
  return progress;
}

// Leaves a chart of images out where no run has it.
Json curves_json(const Charts& charts, std::span<const RunReport> reports) {
  const auto unit = unit_of(reports);
  const std::array<std::pair<std::string, std::string>, kCharts> titles = {
      {{"loss", "Loss"},
       {"accuracy", "Accuracy (%)"},
       {"learning_rate", "Learning rate"},
       {"gradient_norm", "Gradient norm"},
       {"tokens_per_second", fmt::format("{}/s", unit)}}};
  Json list = Json::array();
  for (std::size_t i = 0; i < kCharts; ++i) {
    Json curves = Json::array();
    for (const auto& curve : charts[i]) {
      if (!curve.points.empty()) curves.push_back(curve_json(curve));
    }
    if (i == kAccuracy && curves.empty()) continue;
    list.push_back(
        {{"id", titles[i].first}, {"title", titles[i].second}, {"curves", std::move(curves)}});
  }
  Json progress = Json::array();
  for (const auto& report : reports) progress.push_back(progress_json(report));
  return {{"unit", unit}, {"progress", std::move(progress)}, {"charts", std::move(list)}};
}

void add_validation(const RunReport& report, const std::string& name, std::size_t run,
                    const std::string& kind, Charts& charts) {
  charts[kLoss].push_back({name, run, kind, points_of(report.validation_losses), true});
  auto percents = points_of(report.validation_accuracies);
  for (auto& [round, accuracy] : percents) accuracy *= 100;
  charts[kAccuracy].push_back({name, run, kind, std::move(percents), true});
}

}  // namespace

std::string unit_of(std::span<const RunReport> reports) {
  const auto& unit = reports.front().unit();
  const bool is_one =
      std::ranges::all_of(reports, [&](const RunReport& report) { return report.unit() == unit; });
  return is_one ? unit : "tokens or images";
}

Json curves_of_run(const RunReport& report) {
  Charts charts;
  for (std::size_t i = 0; i < report.sites.size(); ++i) {
    const auto& site = report.sites[i];
    const auto kind = color_class(i, report.sites.size());
    const auto points = site.curve.points();
    for (const auto& [chart, value] : {kStepLoss, kStepRate, kStepNorm}) {
      Points figures;
      for (const auto& point : points) {
        if (std::isfinite(point.*value)) figures.emplace_back(point.rounds, point.*value);
      }
      charts[chart].push_back({site.site, 0, kind, std::move(figures)});
    }
    charts[kSpeed].push_back({site.site, 0, kind, points_of(speeds(site))});
  }
  add_validation(report, "validation, all sites", 0, "validation", charts);
  return curves_json(charts, {&report, 1});
}

Json curves_of_runs(std::span<const RunReport> reports, std::span<const std::string> names) {
  Charts charts;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const auto& report = reports[i];
    const auto kind = color_class(i, reports.size());
    charts[kLoss].push_back({names[i], i, kind, points_of(report.train_losses)});
    for (const auto& [chart, value] : {kStepRate, kStepNorm}) {
      charts[chart].push_back({names[i], i, kind, points_of(means_by_round(report, value))});
    }
    ByRound sums;
    for (const auto& site : report.sites) {
      for (const auto& [round, speed] : speeds(site)) sums[round] += speed;
    }
    charts[kSpeed].push_back({names[i], i, kind, points_of(sums)});
    add_validation(report, fmt::format("{}, validation", names[i]), i, kind, charts);
  }
  return curves_json(charts, reports);
}

}  // namespace farstep
