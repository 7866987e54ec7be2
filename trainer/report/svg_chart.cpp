// SVG is text, so a chart is built like a page: by formatting. Shapes carry classes and no colours,
// so that the page's style decides how they look.
#include "trainer/report/svg_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace farstep {

namespace {

// Of a tick's label: a digit's width at most, and the least gap to its neighbour.
constexpr double kDigitPixels = 7.7, kLabelGap = 8;
constexpr double kPhonePixels = 230;  // the narrowest drawing on a phone of 360 pixels
constexpr std::size_t kNameLetters = 12, kNameEnd = 4;

// Ends an element, with its tip if it has one.
std::string closed(std::string_view element, std::string_view tip) {
  if (tip.empty()) return "/>\n";
  return fmt::format("><title>{}</title></{}>\n", escape_html(tip), element);
}

std::string time_label(double seconds, double step) {
  if (step < 60) return fmt::format("{:g} s", seconds);
  if (step < 3600) return fmt::format("{:g} min", seconds / 60);
  return fmt::format("{:g} h", seconds / 3600);
}

// Returns where the label of a tick begins and ends, on a drawing of `width` pixels.
std::pair<double, double> extent_of(const Tick& tick, double width) {
  const double middle = tick.first / 100 * width;
  const double half = kDigitPixels * static_cast<double>(tick.second.size()) / 2;
  return {middle - half, middle + half};
}

// Returns whether a tick has a label where each `every`-th has one. Ticks stand at multiples of a
// step, from 0 or from 1; those that stay are multiples of more steps.
bool is_kept(const std::vector<Tick>& ticks, std::size_t index, std::size_t every) {
  const std::size_t first = ticks.front().first > 0 ? 1 : 0;
  return (index + first) % every == 0;
}

// Returns the least multiple of `factor` so that labels at each such tick do not touch. On a phone
// those at the ends are moved into the drawing.
std::size_t sparseness(const std::vector<Tick>& ticks, double width, std::size_t factor,
                       bool is_phone) {
  for (std::size_t every = factor; every < ticks.size(); every += factor) {
    double end = -std::numeric_limits<double>::infinity();
    bool is_touched = false;
    for (std::size_t i = 0; i < ticks.size(); ++i) {
      if (!is_kept(ticks, i, every)) continue;
      auto [label_begin, label_end] = extent_of(ticks[i], width);
      const double moved = label_begin < 0 ? -label_begin : std::min(width - label_end, 0.0);
      if (is_phone) {
        label_begin += moved;
        label_end += moved;
      }
      is_touched = is_touched || label_begin < end + kLabelGap;
      end = label_end;
    }
    if (!is_touched) return every;
  }
  return std::max(ticks.size(), factor);
}

// Returns the smallest of 1, 2, 5 times a power of ten that is at least `step`. Readers can add
// such steps in their heads.
double round_up(double step) {
  const double power = std::pow(10, std::floor(std::log10(step)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    // The tolerance is for steps such as 0.1, which are not exact in binary.
    if (factor * power >= step * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

// %g hides the rounding error of the value. Beside an axis there is room for six digits: "1.5e-4".
std::string tick_label(double value) {
  if (value == 0 || std::abs(value) >= 1e-3) return fmt::format("{:g}", value);
  const auto exponent = static_cast<int>(std::floor(std::log10(std::abs(value)) + 1e-9));
  return fmt::format("{:g}e{}", value * std::pow(10.0, -exponent), exponent);
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

// A tenth of a pixel is invisible, and short numbers keep the page small.
std::string pixels(double value) {
  const double rounded = std::round(value * 10) / 10;
  return fmt::format("{:g}", rounded == 0 ? 0.0 : rounded);
}

// A hundredth of a percent is invisible.
std::string percent(double value) {
  const double rounded = std::round(value * 100) / 100;
  return fmt::format("{:g}%", rounded == 0 ? 0.0 : rounded);
}

SvgCanvas::SvgCanvas(double height, std::string_view css_class, std::string_view label)
    : head_(fmt::format("<svg height=\"{}\" class=\"{}\" {}>\n", pixels(height), css_class,
                        label.empty()
                            ? "aria-hidden=\"true\""
                            : fmt::format("role=\"img\" aria-label=\"{}\"", escape_html(label)))),
      height_(height) {}

void SvgCanvas::rect(double x, double y, double width, double height, std::string_view css_class,
                     std::string_view tip) {
  add(fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"{}\"", percent(x),
                  pixels(y), percent(width), pixels(height), css_class) +
      closed("rect", tip));
}

void SvgCanvas::line(double x1, double y1, double x2, double y2, std::string_view css_class) {
  add(fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"{}\"/>\n", percent(x1),
                  pixels(y1), percent(x2), pixels(y2), css_class));
}

void SvgCanvas::circle(double x, double y, double radius, std::string_view css_class,
                       std::string_view tip) {
  add(fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" class=\"{}\"", percent(x), pixels(y),
                  pixels(radius), css_class) +
      closed("circle", tip));
}

void SvgCanvas::path(std::string_view commands, std::string_view css_class, std::string_view tip) {
  add(fmt::format("<path d=\"{}\" class=\"{}\"", commands, css_class) + closed("path", tip), true);
}

void SvgCanvas::text(double x, double y, std::string_view content, std::string_view css_class,
                     Anchor anchor, double shift) {
  constexpr std::array<std::string_view, 3> kAnchors = {"start", "middle", "end"};
  const auto moved = shift == 0 ? "" : fmt::format(" dx=\"{}\"", pixels(shift));
  add(fmt::format("<text x=\"{}\" y=\"{}\"{} text-anchor=\"{}\" class=\"{}\">{}</text>\n",
                  percent(x), pixels(y), moved, kAnchors[static_cast<std::size_t>(anchor)],
                  css_class, escape_html(content)));
}

void SvgCanvas::labels(const std::vector<Tick>& ticks, double y, double least_pixels) {
  const std::size_t every = sparseness(ticks, least_pixels, 1, false);
  const std::size_t on_phone = sparseness(ticks, std::min(kPhonePixels, least_pixels), every, true);
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    const auto& [x, label] = ticks[i];
    if (!is_kept(ticks, i, every)) continue;
    std::string css = is_kept(ticks, i, on_phone) ? "tick" : "tick spare";
    const auto [begin, end] = extent_of(ticks[i], kPhonePixels);
    if (begin < 0) css += " first";
    if (end > kPhonePixels) css += " last";
    text(x, y, label, css, Anchor::kMiddle);
  }
}

// Paths stand in a drawing inside the drawing, which is stretched to its width.
void SvgCanvas::add(const std::string& element, bool is_path) {
  if (is_path && !in_paths_) {
    body_ += fmt::format(
        "<svg viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\" width=\"100%\" height=\"{}\">\n",
        pixels(kPathWidth), pixels(height_), pixels(height_));
  }
  if (!is_path && in_paths_) body_ += "</svg>\n";
  in_paths_ = is_path;
  body_ += element;
}

std::string SvgCanvas::finish() const {
  return head_ + body_ + (in_paths_ ? "</svg>\n" : "") + "</svg>\n";
}

RowChart::RowChart(std::string_view css_class, std::string_view label)
    : body_(fmt::format("<div class=\"rows {}\" role=\"img\" aria-label=\"{}\">\n", css_class,
                        escape_html(label))) {}

// The page's style shortens the part in <i>, to the place that there is.
void RowChart::add(std::string_view name, const SvgCanvas& drawing) {
  std::size_t end = name.size();
  if (end > kNameLetters) {
    end -= kNameEnd;
    // A letter may have several bytes.
    while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) --end;
  }
  body_ +=
      fmt::format("<span class=\"lane-name\" title=\"{}\"><i>{}</i>{}</span>\n", escape_html(name),
                  escape_html(name.substr(0, end)), escape_html(name.substr(end))) +
      drawing.finish();
}

void RowChart::add_axis(std::string_view name, const SvgCanvas& drawing) {
  body_ +=
      fmt::format("<span class=\"axis-name\">{}</span>\n", escape_html(name)) + drawing.finish();
}

std::vector<Tick> number_ticks(double low, double high, int most) {
  std::vector<Tick> ticks;
  if (!(high > low)) return ticks;
  const double step = round_up((high - low) / (most - 1));
  for (double k = std::ceil(low / step - 1e-9); k * step <= high + step * 1e-9; ++k) {
    // Adding 0 turns -0 into 0.
    ticks.emplace_back(k * step + 0.0, tick_label(k * step + 0.0));
  }
  return ticks;
}

std::vector<Tick> whole_ticks(double low, double high, int most) {
  auto ticks = number_ticks(low, high, most);
  std::erase_if(ticks, [](const Tick& tick) { return tick.first != std::floor(tick.first); });
  return ticks;
}

// Decimal steps up to 5 s; beyond that, divisors of minutes, hours and days.
std::vector<Tick> time_ticks(double high_seconds, int most) {
  std::vector<Tick> ticks;
  if (!(high_seconds > 0)) return ticks;
  double step = high_seconds / most;
  // Seconds that clocks show: tens and quarters of minutes, then hours and parts of a day.
  constexpr std::array<double, 15> kSteps = {10,  15,   20,   30,   60,    120,   300,  600,
                                             900, 1800, 3600, 7200, 10800, 21600, 43200};
  if (step <= 5) {
    step = round_up(step);
  } else {
    double chosen = 0;
    for (const double candidate : kSteps) {
      if (chosen == 0 && candidate >= step) chosen = candidate;
    }
    step = chosen > 0 ? chosen : 86400 * round_up(step / 86400);
  }
  for (int k = 0; k * step <= high_seconds * (1 + 1e-9) && k < most; ++k) {
    ticks.emplace_back(k * step, time_label(k * step, step));
  }
  return ticks;
}

std::vector<Tick> placed(std::vector<Tick> ticks, const Scale& scale) {
  for (auto& tick : ticks) tick.first = scale(tick.first);
  return ticks;
}

std::string polyline(const Points& points) {
  std::string commands;
  for (const auto& [x, y] : points) {
    commands += fmt::format("{}{} {}", commands.empty() ? "M" : "L", pixels(x), pixels(y));
  }
  return commands;
}

Points thinned(const Points& points) {
  const std::size_t group = (points.size() + kMostCurvePoints - 1) / kMostCurvePoints;
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

}  // namespace farstep
