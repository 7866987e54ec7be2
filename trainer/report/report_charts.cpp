#include "trainer/report/report_charts.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "trainer/account/membership.h"
#include "trainer/report/lanes.h"
#include "trainer/report/page_style.h"
#include "trainer/report/svg_chart.h"
#include "trainer/telemetry/figure_text.h"

namespace farstep {

namespace {

constexpr double kCaptionHeight = 44;  // of an axis: its labels, and what they count

// A chart of curves: from its upper edge to the axis, and with what stands below.
constexpr double kTop = 12, kBottom = 286, kHeight = kBottom + kCaptionHeight;

void draw_axes(SvgCanvas& canvas, const Scale& x, const Scale& y) {
  constexpr double kLeastPixels = 380;  // across the plot, where two charts stand side by side
  for (const auto& [value, label] : number_ticks(y.low, y.high, 7)) {
    canvas.line(0, y(value), 100, y(value), "grid");
    canvas.text(0, y(value) + 4, label, "tick", Anchor::kEnd, -8);
  }
  const auto rounds = whole_ticks(x.low, x.high, 11);
  for (const auto& [round, label] : rounds) {
    canvas.line(x(round), kBottom, x(round), kBottom + 4, "mark");
  }
  canvas.labels(placed(rounds, x), kBottom + 18, kLeastPixels);
  canvas.line(0, kBottom, 100, kBottom, "mark");
  canvas.text(50, kBottom + 36, "rounds", "tick", Anchor::kMiddle);
}

// Returns the points of a curve in the units of a path.
std::string curve(const Points& points, const Scale& x, const Scale& y) {
  Points places;
  for (const auto& [a, b] : points) {
    places.emplace_back(x(a) / 100 * SvgCanvas::kPathWidth, y(b));
  }
  return polyline(places);
}

// The lines of a chart: a thin one for each site, and the validation's.
struct Curves {
  struct Site {
    std::string name;
    Points points;
  };
  std::vector<Site> sites = {};
  Points validation = {};
};

Points points_of(const std::map<int64_t, double>& figures) {
  return thinned(Points(figures.begin(), figures.end()));
}

// A step may lack the figure.
std::vector<Curves::Site> step_curves(const RunReport& report, double StepPoint::*value) {
  std::vector<Curves::Site> sites;
  for (const auto& site : report.sites) {
    Points points;
    for (const auto& point : site.curve.points()) {
      if (std::isfinite(point.*value)) points.emplace_back(point.rounds, point.*value);
    }
    sites.push_back({site.site, thinned(points)});
  }
  return sites;
}

// The axes cover all curves with a margin, so that none touches the border.
std::string curve_chart(std::string_view label, const Curves& curves,
                        std::string (*text_of)(double value)) {
  SvgCanvas canvas(kHeight, "curves", label);
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  double rounds = 1;
  const auto include = [&](const Points& points) {
    for (const auto& [round, value] : points) {
      low = std::min(low, value);
      high = std::max(high, value);
      rounds = std::max(rounds, round);
    }
  };
  for (const auto& site : curves.sites) include(site.points);
  include(curves.validation);
  if (!(low <= high)) {
    canvas.text(50, kHeight / 2, "no values yet", "tick", Anchor::kMiddle);
    return canvas.finish();
  }
  // A flat curve would have no height without the least margin.
  const double largest = std::max(std::abs(low), std::abs(high));
  const double margin = std::max(0.04 * (high - low), largest > 0 ? 1e-3 * largest : 1);
  const Scale x{0, rounds};
  const Scale y{low - margin, high + margin, kBottom, kTop};
  draw_axes(canvas, x, y);
  for (std::size_t i = 0; i < curves.sites.size(); ++i) {
    canvas.path(curve(curves.sites[i].points, x, y), "curve " + color_class(i, curves.sites.size()),
                curves.sites[i].name);
  }
  canvas.path(curve(curves.validation, x, y), "curve validation", "validation");
  // More points than this would hide the line.
  if (curves.validation.size() <= 60) {
    for (const auto& [round, value] : curves.validation) {
      canvas.circle(x(round), y(value), 3.5, "validation-point",
                    fmt::format("validation after round {:g}: {}", round, text_of(value)));
    }
  }
  return canvas.finish();
}

// Draws the bar of one site, and its idle share beside it.
void draw_idle_bar(SvgCanvas& canvas, const SiteReport& site, const Scale& x, double height) {
  const auto& time = site.time().total;
  double before = 0;
  for (std::size_t i = 0; i < kSpanCauses; ++i) {
    const double seconds = time.seconds_by_cause[i];
    const auto cause = static_cast<SpanCause>(i);
    if (!(seconds > 0) || cause == SpanCause::kServe) continue;
    const double share = seconds / time.total_seconds();
    canvas.rect(x(before), 0, x(before + share) - x(before), height, name_of(cause),
                fmt::format("{}: {} {:.1f} s, {:.1f} % of the time", site.site, label_of(cause),
                            seconds, 100 * share));
    before += share;
  }
  canvas.text(x(before), height / 2 + 4, percent_text(before), "value", Anchor::kStart, 8);
}

}  // namespace

std::vector<LegendEntry> timeline_legend(const RunReport& report) {
  std::vector<LegendEntry> entries;
  const auto all = report.total_time();
  for (std::size_t i = 0; i < kKinds; ++i) {
    const std::size_t kind = kind_from_below(i);
    const double seconds = kind == kCompute ? all.compute_seconds : all.seconds_by_cause[kind];
    if (seconds == 0) continue;
    entries.push_back({std::string(class_of(kind)), std::string(label_of_kind(kind))});
  }
  return entries;
}

std::vector<LegendEntry> idle_legend(const RunReport& report) {
  auto entries = timeline_legend(report);
  std::erase_if(entries, [](const LegendEntry& entry) {
    return entry.css_class == class_of(kCompute) || entry.css_class == name_of(SpanCause::kServe);
  });
  return entries;
}

std::vector<LegendEntry> loss_legend(const RunReport& report) {
  std::vector<LegendEntry> entries;
  if (!report.validation_losses.empty()) {
    entries.push_back({"validation", "validation, all sites"});
  }
  const auto sites = report.sites.size();
  if (sites > kSiteColors) {
    entries.push_back({color_class(0, sites), "training, a line a site"});
    return entries;
  }
  for (std::size_t i = 0; i < sites; ++i) {
    entries.push_back({color_class(i, sites), report.sites[i].site});
  }
  return entries;
}

std::string loss_chart(const RunReport& report) {
  Curves curves{.sites = step_curves(report, &StepPoint::loss),
                .validation = points_of(report.validation_losses)};
  return curve_chart("Loss by round", curves, [](double loss) { return loss_text(loss); });
}

std::vector<TitledChart> step_charts(const RunReport& report) {
  std::vector<TitledChart> charts;
  for (const auto& [title, value] : {std::pair{"Learning rate", &StepPoint::learning_rate},
                                     {"Gradient norm", &StepPoint::gradient_norm}}) {
    auto sites = step_curves(report, value);
    const bool has_any =
        std::ranges::any_of(sites, [](const auto& site) { return !site.points.empty(); });
    if (!has_any) continue;
    charts.push_back({title, curve_chart(fmt::format("{} by round", title),
                                         {.sites = std::move(sites), .validation = {}},
                                         [](double) { return std::string(); })});
  }
  return charts;
}

std::string accuracy_chart(const RunReport& report) {
  auto percents = points_of(report.validation_accuracies);
  for (auto& [round, accuracy] : percents) accuracy *= 100;
  return curve_chart("Accuracy by round, in percent", {.sites = {}, .validation = percents},
                     [](double percent) { return accuracy_text(percent / 100); });
}

// A round is as wide as the distance of two ticks that are one apart: round r from r - 1 to r.
std::string presence_chart(const Membership& membership) {
  const bool is_dense = membership.sites.size() > kFewSites;
  const double height = is_dense ? 14 : 20;
  const double pitch = height + (is_dense ? 4 : 10);
  const Scale x{0, static_cast<double>(membership.known.back().last)};
  const auto ticks = placed(whole_ticks(x.low, x.high, 20), x);
  RowChart chart(is_dense ? "lanes dense" : "lanes", "Rounds in which each site took part");
  for (const auto& [site, rounds] : membership.sites) {
    SvgCanvas canvas(pitch, "strip");
    for (const auto& tick : ticks) canvas.line(tick.first, 0, tick.first, pitch, "grid");
    canvas.rect(0, 0, 100, height, "lane");
    for (const auto& range : rounds) {
      const double begin = x(static_cast<double>(range.first - 1));
      canvas.rect(begin, 0, x(static_cast<double>(range.last)) - begin, height, "compute",
                  fmt::format("{}: rounds {}", site, ranges_text({range})));
    }
    chart.add(site, canvas);
  }
  SvgCanvas axis(kAxisHeight, "axis");
  axis.labels(ticks, 14, kLeastLanePixels);
  chart.add_axis("rounds", axis);
  return chart.finish();
}

// The bars of few sites are thick, so that the chart is as high as its neighbour.
std::string idle_chart(const RunReport& report) {
  constexpr double kLeastPixels = 130;  // across the bars, where two charts stand side by side
  const bool is_dense = report.sites.size() > 8;
  const double height = is_dense ? 14 : 30;
  const double pitch = is_dense ? 20 : 48;
  // At least a hundredth, so that a run without idle time has an axis.
  double most = 0.01;
  for (const auto& site : report.sites) {
    most = std::max(most, site.time().total.idle_fraction());
  }
  const Scale x{0, 100 * most};
  const auto ticks = placed(number_ticks(x.low, x.high, 5), x);
  RowChart chart(is_dense ? "bars dense" : "bars", "Idle time by site and cause");
  for (const auto& site : report.sites) {
    SvgCanvas canvas(pitch, "strip");
    for (const auto& tick : ticks) canvas.line(tick.first, 0, tick.first, pitch, "grid");
    draw_idle_bar(canvas, site, Scale{0, most}, height);
    canvas.line(0, 0, 0, pitch, "mark");
    chart.add(site.site, canvas);
  }
  SvgCanvas axis(kCaptionHeight, "axis");
  axis.labels(ticks, 14, kLeastPixels);
  axis.text(50, 34, "idle share of a site (%)", "tick", Anchor::kMiddle);
  chart.add_axis("", axis);
  return chart.finish();
}

}  // namespace farstep
