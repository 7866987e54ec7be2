#include "trainer/report/svg_chart.h"

#include "tests/support/catch.h"

namespace farstep {

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
  CHECK(polyline({}).empty());
  CHECK(polyline({{1, 2}, {3.25, 4}}) == "M1 2L3.3 4");
}

TEST_CASE("a canvas escapes what it is told to write") {
  SvgCanvas canvas(10, 20, "<label>");
  canvas.rect(0, 0, 1, 1, "wait", "a & b");
  canvas.text(0, 0, "x < y", "tick", Anchor::kEnd);
  const auto svg = canvas.finish();
  CHECK(svg.find("<label>") == svg.npos);
  CHECK(svg.find("<title>a &amp; b</title>") != svg.npos);
  CHECK(svg.find(">x &lt; y</text>") != svg.npos);
  CHECK(svg.find("text-anchor=\"end\"") != svg.npos);
}

}  // namespace farstep
