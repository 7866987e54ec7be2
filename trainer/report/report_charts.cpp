#include "trainer/report/report_charts.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "trainer/account/membership.h"
#include "trainer/report/svg_chart.h"
#include "trainer/telemetry/figure_text.h"

namespace farstep {

namespace {

using Points = std::vector<std::pair<double, double>>;

constexpr std::size_t kMostPoints = 400;  // of one curve, on 578 pixels
constexpr std::size_t kSiteColors = 8;    // in the style of the page

// Returns means of neighbouring points, at most kMostPoints. Means, since leaving points out would
// show noise as if it were the curve.
Points thinned(const Points& points) {
  const std::size_t group = (points.size() + kMostPoints - 1) / kMostPoints;
  if (group <= 1) return points;
  Points means;
  for (std::size_t begin = 0; begin < points.size(); begin += group) {
    const std::size_t end = std::min(begin + group, points.size());
    double x = 0;
    double y = 0;
    for (std::size_t i = begin; i < end; ++i) {
      x += points[i].first;
      y += points[i].second;
    }
    const auto count = static_cast<double>(end - begin);
    means.emplace_back(x / count, y / count);
  }
  return means;
}

struct Plot {
  double width, left, right, top, bottom;  // right, top, bottom: edges in pixels
};
// Room for the labels on the left and below. The drawing is scaled to the width of its section.
constexpr Plot kPlot{640, 44, 622, 12, 286};

void draw_axes(SvgCanvas& canvas, const Scale& x, const Scale& y) {
  for (const auto& [value, label] : number_ticks(y.low, y.high, 7)) {
    canvas.line(kPlot.left, y(value), kPlot.right, y(value), "grid");
    canvas.text(kPlot.left - 8, y(value) + 4, label, "tick", Anchor::kEnd);
  }
  for (const auto& [round, label] : number_ticks(x.low, x.high, 11)) {
    if (round != std::floor(round)) continue;
    canvas.line(x(round), kPlot.bottom, x(round), kPlot.bottom + 4, "mark");
    canvas.text(x(round), kPlot.bottom + 18, label, "tick", Anchor::kMiddle);
  }
  canvas.line(kPlot.left, kPlot.bottom, kPlot.right, kPlot.bottom, "mark");
  canvas.text((kPlot.left + kPlot.right) / 2, kPlot.bottom + 36, "rounds", "tick", Anchor::kMiddle);
}

Points scaled(const Points& points, const Scale& x, const Scale& y) {
  Points scaled_points;
  for (const auto& [a, b] : points) scaled_points.emplace_back(x(a), y(b));
  return scaled_points;
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

// The axes cover all curves with a margin, so that none touches the border.
std::string curve_chart(std::string_view label, const Curves& curves,
                        std::string (*text_of)(double value)) {
  SvgCanvas canvas(kPlot.width, kPlot.bottom + 44, label);
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
    canvas.text(kPlot.width / 2, 150, "no losses yet", "tick", Anchor::kMiddle);
    return canvas.finish();
  }
  // A flat curve would have no height without the least margin.
  const double margin = std::max(0.04 * (high - low), 1e-3);
  const Scale x{0, rounds, kPlot.left, kPlot.right};
  const Scale y{low - margin, high + margin, kPlot.bottom, kPlot.top};
  draw_axes(canvas, x, y);
  for (std::size_t i = 0; i < curves.sites.size(); ++i) {
    canvas.path(polyline(scaled(curves.sites[i].points, x, y)),
                fmt::format("curve site-{}", i % kSiteColors), curves.sites[i].name);
  }
  canvas.path(polyline(scaled(curves.validation, x, y)), "curve validation", "validation");
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
void draw_idle_bar(SvgCanvas& canvas, const SiteReport& site, const Scale& x, double top,
                   double height) {
  const auto& time = site.time();
  double before = 0;
  for (std::size_t i = 0; i < kSpanCauses; ++i) {
    const double seconds = time.total.seconds_by_cause[i];
    const auto cause = static_cast<SpanCause>(i);
    if (!(seconds > 0) || cause == SpanCause::kServe) continue;
    const double share = seconds / time.wall_seconds;
    canvas.rect(x(before), top, x(before + share) - x(before), height, name_of(cause),
                fmt::format("{}: {} {:.1f} s, {:.1f} % of the time", site.site, label_of(cause),
                            seconds, 100 * share));
    before += share;
  }
  canvas.text(x(before) + 8, top + height / 2 + 4, fmt::format("{:.1f} %", 100 * before), "value");
}

}  // namespace

std::string loss_chart(const RunReport& report) {
  Curves curves{.validation = points_of(report.validation_losses)};
  for (const auto& site : report.sites) {
    curves.sites.push_back({site.site, thinned(site.curve.points())});
  }
  return curve_chart("Loss by round", curves, [](double loss) { return loss_text(loss); });
}

std::string accuracy_chart(const RunReport& report) {
  auto percents = points_of(report.validation_accuracies);
  for (auto& [round, accuracy] : percents) accuracy *= 100;
  return curve_chart("Accuracy by round, in percent", {.sites = {}, .validation = percents},
                     [](double percent) { return accuracy_text(percent / 100); });
}

// A round is as wide as the distance of two ticks that are one apart: round r from r - 1 to r.
std::string presence_chart(const Membership& membership) {
  constexpr double kWidth = 1160, kLeft = 104, kRight = 1148, kTop = 12, kBottom = 44;
  const bool is_dense = membership.sites.size() > 12;
  const double height = is_dense ? 10 : 20;
  const double pitch = is_dense ? 14 : 30;
  const double bottom = kTop + pitch * static_cast<double>(membership.sites.size());
  SvgCanvas canvas(kWidth, bottom + kBottom, "Rounds in which each site took part");
  const Scale x{0, static_cast<double>(membership.known.back().last), kLeft, kRight};
  for (const auto& [round, label] : number_ticks(x.low, x.high, 20)) {
    if (round != std::floor(round)) continue;
    canvas.line(x(round), kTop - 4, x(round), bottom + 4, "grid");
    canvas.text(x(round), bottom + 19, label, "tick", Anchor::kMiddle);
  }
  canvas.text((kLeft + kRight) / 2, bottom + 36, "rounds", "tick", Anchor::kMiddle);
  for (std::size_t i = 0; i < membership.sites.size(); ++i) {
    const auto& [site, rounds] = membership.sites[i];
    const double top = kTop + pitch * static_cast<double>(i);
    canvas.text(kLeft - 12, top + height / 2 + 4, short_name(site), "lane-name", Anchor::kEnd);
    canvas.rect(kLeft, top, kRight - kLeft, height, "lane");
    for (const auto& range : rounds) {
      const double begin = x(static_cast<double>(range.first - 1));
      canvas.rect(begin, top, x(static_cast<double>(range.last)) - begin, height, "compute",
                  fmt::format("{}: rounds {}", site, ranges_text({range})));
    }
  }
  return canvas.finish();
}

// More than eight sites get thinner bars, so that the chart keeps its height.
std::string idle_chart(const RunReport& report) {
  constexpr double kWidth = 480, kLeft = 92, kRight = 416, kTop = 12;
  const bool is_dense = report.sites.size() > 8;
  const double height = is_dense ? 14 : 30;
  const double pitch = is_dense ? 20 : 48;
  const double bottom =
      std::max(kTop + pitch * static_cast<double>(report.sites.size()), is_dense ? 0.0 : 160.0);
  SvgCanvas canvas(kWidth, bottom + 44, "Idle time by site and cause");
  // At least a hundredth, so that a run without idle time has an axis.
  double most = 0.01;
  for (const auto& site : report.sites) {
    if (site.time().wall_seconds > 0) {
      most = std::max(most, site.time().total.idle_seconds() / site.time().wall_seconds);
    }
  }
  const Scale x{0, most, kLeft, kRight};
  for (const auto& [percent, label] : number_ticks(0, 100 * most, 5)) {
    canvas.line(x(percent / 100), kTop - 6, x(percent / 100), bottom, "grid");
    canvas.text(x(percent / 100), bottom + 18, label + " %", "tick", Anchor::kMiddle);
  }
  canvas.text((kLeft + kRight) / 2, bottom + 36, "share of wall time", "tick", Anchor::kMiddle);
  for (std::size_t i = 0; i < report.sites.size(); ++i) {
    const auto& site = report.sites[i];
    const double top = kTop + pitch * static_cast<double>(i);
    canvas.text(kLeft - 12, top + height / 2 + 4, short_name(site.site), "lane-name", Anchor::kEnd);
    if (site.time().wall_seconds > 0) draw_idle_bar(canvas, site, x, top, height);
  }
  canvas.line(kLeft, kTop - 6, kLeft, bottom, "mark");
  return canvas.finish();
}

}  // namespace farstep
