#include "heterogeneity/knowledge/site_knowledge.h"

#include "tests/heterogeneity/knowledge/known_sites.h"
#include "tests/support/catch.h"

using namespace farstep;
using namespace farstep::heterogeneity;

TEST_CASE("a step of four devices lasts as long as the slowest one's share") {
  for (const auto& site : paper_sites()) {
    const auto& measured = site.profile->devices[0].step_seconds[0];
    REQUIRE(*step_seconds(site, 4, 1) == Approx(measured.seconds));
  }
  // 0.02 s and 0.01 s a sequence: 4 and 8 of 12.
  const auto site = site_of("a", {device_of({}, {}, {{4, {}, 0.08}, {8, {}, 0.16}}),
                                  device_of({}, {}, {{4, {}, 0.04}, {8, {}, 0.08}})});
  REQUIRE(*step_seconds(site, 12, 8) == Approx(0.08));
  REQUIRE(StepPredictor(site).largest_share(12, 8) == 8);
}

TEST_CASE("a step seen in the run scales the profile") {
  auto site = site_of("a", {device_of({}, {}, {{4, {}, 0.25}, {8, {}, 0.45}})});
  site.seen = SeenStep{4, 4, 0.5};
  REQUIRE(*step_seconds(site, 4, 4) == Approx(0.5));
  REQUIRE(*step_seconds(site, 8, 8) == Approx(0.9));
}

TEST_CASE("a step seen in the run without a profile grows with the batch but never shrinks") {
  auto site = unknown_site("a");
  REQUIRE_FALSE(step_seconds(site, 4, 4));
  site.seen = SeenStep{4, 2, 0.5};
  REQUIRE(*step_seconds(site, 4, 4) == 0.5);
  REQUIRE(*step_seconds(site, 1, 1) == 0.5);
  REQUIRE(*step_seconds(site, 12, 4) == 1.5);
}

TEST_CASE("a device without step times leaves the site's unknown") {
  const auto site = site_of("a", {device_of(100, 8, {{4, {}, 0.25}}), device_of({}, 16)});
  REQUIRE_FALSE(step_seconds(site, 4, 4));
  REQUIRE_FALSE(total_tflops(site));
  REQUIRE(most_micro_batch(site) == 8);
  REQUIRE(StepPredictor(site).largest_share(5, 5) == 3);
}

TEST_CASE("a step that does not grow with its batch can be split") {
  const auto flat = device_of({}, {}, {{4, {}, 0.25}, {8, {}, 0.25}});
  REQUIRE(*step_seconds(site_of("a", {flat, flat}), 16, 8) == Approx(0.25));
  REQUIRE(StepPredictor(site_of("a", {flat, flat})).largest_share(16, 8) == 8);
}
