// SVG is text, so a chart is built like a page: by formatting. Shapes carry classes and no colours,
// so that the page's style decides how they look.
#include "trainer/report/svg_chart.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace farstep {

namespace {

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

SvgCanvas::SvgCanvas(double width, double height, std::string_view label)
    : body_(fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n",
                        pixels(width), pixels(height), escape_html(label))) {}

void SvgCanvas::rect(double x, double y, double width, double height, std::string_view css_class,
                     std::string_view tip) {
  body_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"{}\"", pixels(x),
                       pixels(y), pixels(width), pixels(height), css_class) +
           closed("rect", tip);
}

void SvgCanvas::line(double x1, double y1, double x2, double y2, std::string_view css_class) {
  body_ += fmt::format("<path d=\"M{} {}L{} {}\" class=\"{}\"/>\n", pixels(x1), pixels(y1),
                       pixels(x2), pixels(y2), css_class);
}

void SvgCanvas::circle(double x, double y, double radius, std::string_view css_class,
                       std::string_view tip) {
  body_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" class=\"{}\"", pixels(x), pixels(y),
                       pixels(radius), css_class) +
           closed("circle", tip);
}

void SvgCanvas::path(std::string_view commands, std::string_view css_class, std::string_view tip) {
  body_ += fmt::format("<path d=\"{}\" class=\"{}\"", commands, css_class) + closed("path", tip);
}

void SvgCanvas::text(double x, double y, std::string_view content, std::string_view css_class,
                     Anchor anchor) {
  constexpr std::array<std::string_view, 3> kAnchors = {"start", "middle", "end"};
  body_ += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\" class=\"{}\">{}</text>\n",
                       pixels(x), pixels(y), kAnchors[static_cast<std::size_t>(anchor)], css_class,
                       escape_html(content));
}

std::vector<Tick> number_ticks(double low, double high, int most) {
  std::vector<Tick> ticks;
  if (!(high > low)) return ticks;
  const double step = round_up((high - low) / (most - 1));
  for (double k = std::ceil(low / step - 1e-9); k * step <= high + step * 1e-9; ++k) {
    // %g hides the rounding error of k * step; adding 0 turns -0 into 0.
    ticks.emplace_back(k * step + 0.0, fmt::format("{:g}", k * step + 0.0));
  }
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

std::string polyline(const std::vector<std::pair<double, double>>& points) {
  std::string commands;
  for (const auto& [x, y] : points) {
    commands += fmt::format("{}{} {}", commands.empty() ? "M" : "L", pixels(x), pixels(y));
  }
  return commands;
}

}  // namespace farstep
