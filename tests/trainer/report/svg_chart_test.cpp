#include "trainer/report/svg_chart.h"

#include "tests/support/catch.h"

namespace farstep {

namespace {

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("number ticks are round and within the range and not too many") {
  for (const double low : {-3.0, 0.0, 2.97, 1e-5, 12345.0}) {
    for (const double range : {1e-3, 0.7, 1.0, 5.0, 99.0, 1e6}) {
      for (const int most : {2, 5, 7, 20}) {
        const auto ticks = number_ticks(low, low + range, most);
        CHECK(static_cast<int>(ticks.size()) <= most);
        if (most >= 5) CHECK_FALSE(ticks.empty());
        for (const auto& [value, label] : ticks) {
          CHECK(value >= low - range * 1e-6);
          CHECK(value <= low + range * (1 + 1e-6));
        }
      }
    }
  }
  CHECK(number_ticks(1, 1, 5).empty());
  // Small numbers would be too long beside an axis: 0.00025.
  CHECK(number_ticks(0, 4e-4, 5)[3].second == "3e-4");
  CHECK(number_ticks(-1.5e-5, 0, 4).front().second == "-1.5e-5");
  CHECK(number_ticks(0, 2e-3, 5)[2].second == "0.001");
  for (const auto& [value, label] : number_ticks(1e-7, 3e-7, 9)) {
    CHECK(std::stod(label) == Approx(value).epsilon(1e-9));
  }
  CHECK(number_ticks(0, 10, 20).back().second == "10");
  CHECK(number_ticks(0, 10, 20).front().second == "0");
}

TEST_CASE("time ticks begin at zero and are not too many and say their unit") {
  for (const double seconds : {0.01, 1.0, 59.0, 276.0, 3600.0, 1e5, 1e7, 1e9}) {
    for (const int most : {3, 10}) {
      const auto ticks = time_ticks(seconds, most);
      REQUIRE_FALSE(ticks.empty());
      CHECK(static_cast<int>(ticks.size()) <= most);
      CHECK(ticks.front().first == 0);
      CHECK(ticks.back().first <= seconds * (1 + 1e-6));
      CHECK(ticks.back().second.find(' ') != std::string::npos);
    }
  }
  CHECK(time_ticks(276, 10)[1].second == "30 s");
  CHECK(time_ticks(7200, 10)[1].second == "15 min");
  CHECK(time_ticks(0, 10).empty());
}

TEST_CASE("coordinates are short") {
  CHECK(pixels(0) == "0");
  CHECK(pixels(-0.01) == "0");
  CHECK(pixels(12.34) == "12.3");
  CHECK(pixels(1160) == "1160");
  CHECK(percent(-0.001) == "0%");
  CHECK(percent(12.346) == "12.35%");
  CHECK(percent(100) == "100%");
  CHECK(polyline({}).empty());
  CHECK(polyline({{1, 2}, {3.25, 4}}) == "M1 2L3.3 4");
}

TEST_CASE("a canvas escapes what it is told to write") {
  SvgCanvas canvas(20, "strip", "<label>");
  canvas.rect(0, 0, 1, 1, "wait", "a & b");
  canvas.text(0, 0, "x < y", "tick", Anchor::kEnd, -8);
  const auto svg = canvas.finish();
  CHECK(svg.find("<label>") == svg.npos);
  CHECK(svg.find("<title>a &amp; b</title>") != svg.npos);
  CHECK(svg.find(">x &lt; y</text>") != svg.npos);
  CHECK(svg.find("dx=\"-8\" text-anchor=\"end\"") != svg.npos);
  RowChart chart("lanes", "\"rows\"");
  chart.add("<site>", canvas);
  CHECK(chart.finish().find("<site>") == std::string::npos);
  CHECK(chart.finish().find("aria-label=\"&quot;rows&quot;\"") != std::string::npos);
}

TEST_CASE("paths are stretched to the width and keep their place among other shapes") {
  SvgCanvas canvas(30, "strip");
  canvas.rect(0, 0, 100, 30, "lane");
  canvas.path("M0 0h500", "compute");
  canvas.path("M500 0h500", "wait");
  canvas.line(50, 0, 50, 30, "cut");
  canvas.path("M0 0h1", "wan");
  const auto svg = canvas.finish();
  CHECK(svg.find("viewBox=\"0 0 1000 30\" preserveAspectRatio=\"none\"") != svg.npos);
  CHECK(count_of(svg, "<svg") == 3);  // the drawing, and two groups of paths
  CHECK(count_of(svg, "</svg>") == 3);
  CHECK(svg.find("lane") < svg.find("M0 0h500"));
  CHECK(svg.find("M500 0h500") < svg.find("cut"));
  CHECK(svg.find("cut") < svg.find("M0 0h1\""));
}

TEST_CASE("labels of an axis do not touch and a phone shows fewer and the newest whole") {
  for (const int count : {0, 1, 2, 5, 10, 20, 200}) {
    std::vector<Tick> ticks;
    for (int i = 0; i < count; ++i) {
      ticks.emplace_back(100.0 * (i + 1) / count, std::to_string(100 * (i + 1)));
    }
    SvgCanvas axis(22, "axis");
    axis.labels(ticks, 14, 420);
    const auto svg = axis.finish();
    const auto all = count_of(svg, "<text"), spare = count_of(svg, " spare");
    INFO(count);
    CHECK((all > 0) == (count > 0));
    CHECK(all <= 14);         // of 420 pixels, 8 for each digit and between two labels
    CHECK(all - spare <= 9);  // of 230
    CHECK((all == spare) == (count == 0));
    // The place of the last tick is the right edge.
    if (count == 1 || count == 2) CHECK(svg.find("tick last\">") != svg.npos);
  }
}

TEST_CASE("sparse labels are at multiples of more steps") {
  std::vector<Tick> ticks;
  for (int i = 0; i <= 10; ++i) ticks.emplace_back(10.0 * i, std::to_string(100 * i) + " min");
  SvgCanvas from_zero(22, "axis");
  from_zero.labels(ticks, 14, 420);
  CHECK(from_zero.finish().find(">0 min<") != std::string::npos);
  CHECK(from_zero.finish().find(">200 min<") != std::string::npos);
  CHECK(from_zero.finish().find(">100 min<") == std::string::npos);
  ticks.erase(ticks.begin());
  SvgCanvas from_one(22, "axis");
  from_one.labels(ticks, 14, 420);
  CHECK(from_one.finish().find(">200 min<") != std::string::npos);
  CHECK(from_one.finish().find(">100 min<") == std::string::npos);
}

TEST_CASE("a long name can lose letters before its end and none is cut in two") {
  const auto row_of = [](const std::string& name) {
    RowChart chart("lanes", "rows");
    chart.add(name, SvgCanvas(10, "strip"));
    return chart.finish();
  };
  CHECK(row_of("oslo").find("<i>oslo</i></span>") != std::string::npos);
  CHECK(row_of("a-very-long-site-7").find("<i>a-very-long-si</i>te-7</span>") != std::string::npos);
  CHECK(row_of("").find("<i></i></span>") != std::string::npos);
  // "ö" has two bytes, of which the second is the fourth from the end.
  CHECK(row_of("a-very-long-\xc3\xb6-12").find("<i>a-very-long-</i>\xc3\xb6-12<") !=
        std::string::npos);
}

}  // namespace farstep
