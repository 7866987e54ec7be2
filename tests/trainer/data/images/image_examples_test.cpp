#include "trainer/data/images/image_examples.h"

#include <cmath>
#include <cstring>
#include <map>
#include <tuple>

#include "tests/support/catch.h"
#include "trainer/base/error.h"
#include "trainer/data/loader.h"

namespace farstep {

namespace {

// Images of 2 x 3 x 4 in which every pixel differs from the others.
LabelledImages counted_images(int64_t count) {
  LabelledImages images{.shape = {2, 3, 4}, .pixels = {}, .labels = {}};
  for (int64_t i = 0; i < count * images.shape.size(); ++i) {
    images.pixels.push_back(static_cast<uint8_t>(1 + i % 255));
  }
  for (int64_t i = 0; i < count; ++i) images.labels.push_back(static_cast<uint8_t>(i % 3));
  return images;
}

const PixelStatistics kPlain{.mean = {0, 0}, .deviation = {1, 1}};

const ImageBatch& images_of(const Batch& batch) {
  return *static_cast<const ImageBatch*>(batch.memory.get());
}

// The byte that a value was, with kPlain.
int byte_of(float value) {
  return static_cast<int>(std::lround(value * 255));
}

}  // namespace

TEST_CASE("images come in the order of their numbers with their labels") {
  const auto images = counted_images(3);
  const ImageExamples examples(images, {.mean = {0.25, 0.5}, .deviation = {0.5, 0}}, std::nullopt);
  CHECK(examples.size() == 3);
  const auto batch = examples.read(std::vector<int64_t>{2, 0, 0});
  const auto& read = images_of(batch);
  CHECK(read.labels == std::vector<int64_t>{2, 0, 0});
  REQUIRE(read.images.size() == 3 * 24);
  CHECK(read.images[0] == Approx((images.image(2)[0] / 255.0 - 0.25) / 0.5));
  // A deviation of 0 counts as 1.
  CHECK(read.images[12] == Approx(images.image(2)[12] / 255.0 - 0.5));
  CHECK(read.images[24] == read.images[48]);
  CHECK_THROWS_AS(examples.read(std::vector<int64_t>{3}), InternalError);
  CHECK_THROWS_AS(ImageExamples(images, {.mean = {0}, .deviation = {1}}, std::nullopt),
                  InternalError);

  CHECK(batch.view.examples == 3);
  CHECK(batch.view.targets == 3);
  REQUIRE(batch.view.parts.size() == 2);
  CHECK(batch.view.parts[0].shape == std::vector<int64_t>{2, 3, 4});
  CHECK(std::memcmp(batch.view.parts[0].bytes.data(), read.images.data(), 72 * sizeof(float)) == 0);
  CHECK(batch.view.parts[1].bytes.size() == 3 * sizeof(int64_t));
  CHECK(batch.view.text == "images of 2 x 3 x 4");
  CHECK(examples.read({}).view.examples == 0);
}

TEST_CASE("an image is moved over black and then flipped") {
  const auto images = counted_images(1);
  const Augmentation augmentation{.padding = 2, .flip = true, .seed = 5};
  const ImageExamples examples(images, kPlain, augmentation);
  const auto pixels = images.image(0);
  for (int64_t epoch = 0; epoch < 50; ++epoch) {
    const Draw draw{.number = 0, .epoch = epoch};
    const auto wanted = variation_of(augmentation, draw);
    const auto batch = examples.draw(std::vector{draw});
    const auto& read = images_of(batch).images;
    for (int64_t channel = 0; channel < 2; ++channel) {
      for (int64_t row = 0; row < 3; ++row) {
        for (int64_t column = 0; column < 4; ++column) {
          // Where this pixel came from: the flip is undone first.
          const int64_t from_row = row - wanted.down;
          const int64_t from_column = (wanted.flip ? 3 - column : column) - wanted.right;
          const bool is_inside =
              0 <= from_row && from_row < 3 && 0 <= from_column && from_column < 4;
          const auto source = static_cast<std::size_t>((channel * 3 + from_row) * 4 + from_column);
          const auto place = static_cast<std::size_t>((channel * 3 + row) * 4 + column);
          CHECK(byte_of(read[place]) == (is_inside ? pixels[source] : 0));
        }
      }
    }
  }
}

TEST_CASE("variations are those of seed, epoch and number, and all come alike often") {
  const Augmentation augmentation{.padding = 4, .flip = true, .seed = 9};
  auto other_seed = augmentation;
  other_seed.seed = 10;
  std::map<int64_t, int> down, right;
  int flips = 0, same_in_next_epoch = 0, same_with_other_seed = 0;
  constexpr int kDraws = 9000;
  const auto key = [](const Variation& variation) {
    return std::tuple(variation.down, variation.right, variation.flip);
  };
  for (int64_t number = 0; number < kDraws; ++number) {
    const auto variation = variation_of(augmentation, {number, 3});
    CHECK(key(variation) == key(variation_of(augmentation, {number, 3})));
    ++down[variation.down];
    ++right[variation.right];
    flips += variation.flip;
    same_in_next_epoch += key(variation) == key(variation_of(augmentation, {number, 4}));
    same_with_other_seed += key(variation) == key(variation_of(other_seed, {number, 3}));
  }
  // Each of nine places 1000 times; the deviation of that is 30.
  for (const auto& counts : {down, right}) {
    CHECK(counts.size() == 9);
    CHECK(counts.begin()->first == -4);
    for (const auto& [shift, count] : counts) CHECK(std::abs(count - 1000) < 150);
  }
  CHECK(std::abs(flips - kDraws / 2) < 300);
  // One of 162 by chance.
  CHECK(same_in_next_epoch < 120);
  CHECK(same_with_other_seed < 120);
  const auto still = variation_of({.padding = 0, .flip = false, .seed = 9}, {7, 3});
  CHECK(key(still) == std::tuple(0, 0, false));
}

TEST_CASE("validation and runs without augmentation see the images as they are") {
  const auto images = counted_images(4);
  const std::vector<Draw> draws{{3, 0}, {1, 8}};
  const std::vector<int64_t> numbers{3, 1};
  const ImageExamples plain(images, kPlain, std::nullopt);
  const ImageExamples varied(images, kPlain, Augmentation{});
  const auto wanted = images_of(plain.read(numbers)).images;
  CHECK(images_of(plain.draw(draws)).images == wanted);
  CHECK(images_of(varied.read(numbers)).images == wanted);
  CHECK(images_of(varied.draw(draws)).images != wanted);
  CHECK(images_of(varied.draw(draws)).labels == images_of(plain.read(numbers)).labels);
}

TEST_CASE("a loader varies images by the epoch, also where a round is resumed") {
  const auto images = counted_images(5);
  const ImageExamples examples(images, kPlain, Augmentation{.padding = 2, .flip = true, .seed = 1});
  const Sampler sampler(DataOrder::kShuffled, 1, examples.size());
  const RoundRange range{.pool = WindowPool(3), .offset = 4};
  Loader whole(examples, sampler), resumed(examples, sampler);
  whole.begin({.sites = {{.range = range, .batch = 6}}});
  whole.next();
  const auto batch = whole.next();
  resumed.begin({.sites = {{.range = range, .first = 6, .batch = 6}}});
  CHECK(images_of(resumed.next()).images == images_of(batch).images);
  // Numbers 13 to 18 of the order, of epochs 2 and 3.
  std::vector<Draw> draws;
  for (int64_t k = 6; k < 12; ++k) draws.push_back(sampler.draw(range, k));
  CHECK(draws.front().epoch == 2);
  CHECK(draws.back().epoch == 3);
  CHECK(images_of(examples.draw(draws)).images == images_of(batch).images);
}

}  // namespace farstep
