#include "trainer/telemetry/figure_text.h"

#include "tests/support/catch.h"

using namespace farstep;

TEST_CASE("a duration is said as people say it") {
  CHECK(duration_text(0) == "0 s");
  CHECK(duration_text(7.28e-12) == "0 s");
  CHECK(duration_text(0.2394) == "0.239 s");
  CHECK(duration_text(99.9) == "99.9 s");
  CHECK(duration_text(99.96) == "1 min 40 s");
  CHECK(duration_text(119.6) == "2 min");
  CHECK(duration_text(599.4) == "9 min 59 s");
  CHECK(duration_text(599.6) == "10 min");
  CHECK(duration_text(1940) == "32 min");
  CHECK(duration_text(3569) == "59 min");
  CHECK(duration_text(3570) == "1 h");
  CHECK(duration_text(38040.75) == "10 h 34 min");
  CHECK(duration_text(172'769) == "47 h 59 min");
  CHECK(duration_text(172'770) == "2 days");
  CHECK(duration_text(3.17 * 86400) == "3 days 4 h");
  CHECK(duration_text(365 * 86400.0) == "365 days");
}
