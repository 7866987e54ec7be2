#include "trainer/data/images/labelled_images.h"

#include <cmath>

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep {

TEST_CASE("statistics are those of each channel between black and white") {
  // Two images of 2 x 1 x 2; the second channel is one value everywhere.
  const LabelledImages images{
      .shape = {2, 1, 2}, .pixels = {0, 255, 51, 51, 102, 51, 51, 51}, .labels = {0, 1}};
  const auto statistics = pixel_statistics(images);
  REQUIRE(statistics.mean.size() == 2);
  CHECK(statistics.mean[0] == Approx((0 + 1 + 0.4 + 0.2) / 4));
  const double variance =
      (std::pow(0.4, 2) + std::pow(0.6, 2) + std::pow(0.0, 2) + std::pow(0.2, 2)) / 4;
  CHECK(statistics.deviation[0] == Approx(std::sqrt(variance)));
  CHECK(statistics.mean[1] == Approx(0.2));
  CHECK(statistics.deviation[1] == 0);
  CHECK_THROWS_AS(pixel_statistics({}), InternalError);
}

TEST_CASE("an image beyond the last is a bug") {
  const LabelledImages images{.shape = {1, 1, 1}, .pixels = {7}, .labels = {0}};
  CHECK(images.image(0).front() == 7);
  CHECK_THROWS_AS(images.image(1), InternalError);
  CHECK_THROWS_AS(images.image(-1), InternalError);
}

}  // namespace farstep
