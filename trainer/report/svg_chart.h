// Building blocks of the pages' charts: SVG drawings, rows of them with names, scales and ticks.
//
// A drawing is as wide as its place on the page, so that it fits a phone and a wide screen. Lengths
// across are percent of its width; lengths down are pixels from its top, and texts keep their size.
// CSS classes give shapes their colours, so that the page has a light and a dark style. SvgCanvas
// and RowChart are not thread-safe; the functions are.
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

// Returns a place across a drawing with at most two decimals: "12.34%", "7%".
std::string percent(double value);

enum class Anchor { kStart, kMiddle, kEnd };

// A tick of an axis: its value, or its place across a drawing, and its label.
using Tick = std::pair<double, std::string>;

// Collects the shapes of one drawing.
class SvgCanvas {
 public:
  // Units across in the commands of a path, which know no percent.
  static constexpr double kPathWidth = 1000;

  // `label` describes the drawing to screen readers; they skip one with an empty label.
  SvgCanvas(double height, std::string_view css_class, std::string_view label = "");

  // `tip` appears when the pointer is over the shape; an empty one does not.
  void rect(double x, double y, double width, double height, std::string_view css_class,
            std::string_view tip = "");
  void line(double x1, double y1, double x2, double y2, std::string_view css_class);
  void circle(double x, double y, double radius, std::string_view css_class,
              std::string_view tip = "");
  // `commands` is the path's "d" attribute, in units of kPathWidth across; it is not escaped.
  void path(std::string_view commands, std::string_view css_class, std::string_view tip = "");
  // `shift` pixels to the right of `x`.
  void text(double x, double y, std::string_view content, std::string_view css_class,
            Anchor anchor = Anchor::kStart, double shift = 0);
  // Writes the labels of ticks, with their feet at `y`. The ticks are in order of their places;
  // each is a step more than the one before. Only each second, third, ... has a label, where more
  // would touch on a drawing of `least_pixels`. A phone hides those of class "spare", and keeps
  // those of class "first" and "last" within the drawing.
  void labels(const std::vector<Tick>& ticks, double y, double least_pixels);

  // Returns the drawing as an <svg> element.
  std::string finish() const;

 private:
  void add(const std::string& element, bool is_path = false);

  std::string head_, body_;
  double height_;
  bool in_paths_ = false;
};

// Of charts with a lane for each site: more sites than these get thinner lanes; the height of an
// axis; and the width of a lane on the narrowest page on which names stand beside it.
inline constexpr std::size_t kFewSites = 12;
inline constexpr double kAxisHeight = 22, kLeastLanePixels = 350;

// A chart of rows: each has a name, and a drawing on its right; on a phone below it.
class RowChart {
 public:
  // `label` describes the chart to screen readers.
  RowChart(std::string_view css_class, std::string_view label);

  // Adds a row. A long name loses letters before its end, as numbered sites differ there; the whole
  // name is its tip.
  void add(std::string_view name, const SvgCanvas& drawing);
  // Adds a row with an axis; `name`, which may be empty, says what it counts.
  void add_axis(std::string_view name, const SvgCanvas& drawing);

  // Returns the chart as a <div> element.
  std::string finish() const { return body_ + "</div>\n"; }

 private:
  std::string body_;
};

// Maps values to places in a drawing, linearly.
struct Scale {
  double low = 0, high = 1;  // values; must differ
  double low_place = 0, high_place = 100;

  double operator()(double value) const {
    return low_place + (value - low) / (high - low) * (high_place - low_place);
  }
};

// Returns at most `most` (2 or more) ticks in [low, high] at multiples of 1, 2 or 5 times a power
// of ten.
std::vector<Tick> number_ticks(double low, double high, int most);

// Returns those of them that are whole numbers.
std::vector<Tick> whole_ticks(double low, double high, int most);

// Returns at most `most` ticks from 0 to `high_seconds` at round times such as "40 s", "15 min", "2
// h".
std::vector<Tick> time_ticks(double high_seconds, int most);

// Returns the ticks at their places.
std::vector<Tick> placed(std::vector<Tick> ticks, const Scale& scale);

using Points = std::vector<std::pair<double, double>>;

// Returns "M x y L x y ..." through the points.
std::string polyline(const Points& points);

// As many as a curve on 600 pixels can show.
inline constexpr std::size_t kMostCurvePoints = 400;
// Returns means of equal numbers of neighbouring points, kMostCurvePoints at most. Means, since
// leaving points out would show noise as if it were the curve.
Points thinned(const Points& points);

}  // namespace farstep
