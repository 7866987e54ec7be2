// Building blocks of the HTML report's charts: an SVG canvas, scales and ticks.
//
// CSS classes give shapes their colours, so that the page has a light and a dark style. Lengths are
// pixels of the unscaled drawing; y points down. SvgCanvas is not thread-safe; the functions are.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace farstep {

// Returns text with HTML's special characters escaped.
std::string escape_html(std::string_view text);

// Returns a length or coordinate with at most one decimal: "12.3", "7".
std::string pixels(double value);

enum class Anchor { kStart, kMiddle, kEnd };

// Collects the shapes of one drawing.
class SvgCanvas {
 public:
  // `label` describes the drawing to screen readers.
  SvgCanvas(double width, double height, std::string_view label);

  // `tip` appears when the pointer is over the shape; an empty one does not.
  void rect(double x, double y, double width, double height, std::string_view css_class,
            std::string_view tip = "");
  void line(double x1, double y1, double x2, double y2, std::string_view css_class);
  void circle(double x, double y, double radius, std::string_view css_class,
              std::string_view tip = "");
  // `commands` is the path's "d" attribute; it is not escaped.
  void path(std::string_view commands, std::string_view css_class, std::string_view tip = "");
  void text(double x, double y, std::string_view content, std::string_view css_class,
            Anchor anchor = Anchor::kStart);

  // Returns the drawing as an <svg> element.
  std::string finish() const { return body_ + "</svg>\n"; }

 private:
  std::string body_;
};

// Maps values to pixels, linearly.
struct Scale {
  double low = 0, high = 1;  // values; must differ
  double low_pixels = 0, high_pixels = 1;

  double operator()(double value) const {
    return low_pixels + (value - low) / (high - low) * (high_pixels - low_pixels);
  }
};

// A tick of an axis: its value and its label.
using Tick = std::pair<double, std::string>;

// Returns at most `most` (2 or more) ticks in [low, high] at multiples of 1, 2 or 5 times a power
// of ten.
std::vector<Tick> number_ticks(double low, double high, int most);

// Returns at most `most` ticks from 0 to `high_seconds` at round times such as "40 s", "15 min", "2
// h".
std::vector<Tick> time_ticks(double high_seconds, int most);

// Returns "M x y L x y ..." through the points.
std::string polyline(const std::vector<std::pair<double, double>>& points);

}  // namespace farstep
