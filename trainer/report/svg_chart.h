// Drawing blocks of the HTML report: an SVG canvas, scales and ticks.
//
// Shapes take their colours from CSS classes, so that a page can be light and dark. Lengths are
// pixels of the unscaled drawing, y pointing down. Not thread-safe; the functions are.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace farstep {

// Text with the characters that mean something in HTML replaced.
std::string escape_html(std::string_view text);

// A length or coordinate with one digit behind the point at most: "12.3", "7".
std::string pixels(double value);

enum class Anchor { kStart, kMiddle, kEnd };

// Collects the shapes of one drawing.
class SvgCanvas {
 public:
  // `label` says what is drawn, for those who cannot see it.
  SvgCanvas(double width, double height, std::string_view label);

  // `tip` is shown when the pointer rests on the shape; empty shows none.
  void rect(double x, double y, double width, double height, std::string_view css_class,
            std::string_view tip = "");
  void line(double x1, double y1, double x2, double y2, std::string_view css_class);
  void circle(double x, double y, double radius, std::string_view css_class,
              std::string_view tip = "");
  // `commands` is the path's "d", of this program's making.
  void path(std::string_view commands, std::string_view css_class, std::string_view tip = "");
  void text(double x, double y, std::string_view content, std::string_view css_class,
            Anchor anchor = Anchor::kStart);

  // The drawing as an <svg> element.
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

// A tick of an axis: where, and what stands there.
using Tick = std::pair<double, std::string>;

// At most `most` (2 or more) ticks at round numbers (1, 2 or 5 times a power of ten) within [low,
// high].
std::vector<Tick> number_ticks(double low, double high, int most);

// At most `most` ticks at round times from 0 to `high_seconds`, such as "40 s", "15 min", "2 h".
std::vector<Tick> time_ticks(double high_seconds, int most);

// "M x y L x y ..." through the points.
std::string polyline(const std::vector<std::pair<double, double>>& points);

}  // namespace farstep
