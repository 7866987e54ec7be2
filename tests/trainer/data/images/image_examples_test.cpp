#include "trainer/data/image_set.h"

#include <cstring>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "tests/trainer/data/idx_files.h"
#include "trainer/base/error.h"

namespace farstep {

TEST_CASE("images come in the order of their numbers with their labels") {
  TemporaryFolder folder;
  write_file(folder / "images", idx_text({3, 1, 2}, {0, '\xff', 1, 2, 3, 4}));
  write_file(folder / "labels", idx_text({3}, {5, 0, 7}));
  const ImageSet set(folder / "images", folder / "labels");
  CHECK(set.size() == 3);
  CHECK(set.height() == 1);
  CHECK(set.width() == 2);
  CHECK(set.classes() == 8);

  const auto batch = set.images(std::vector<int64_t>{2, 0, 0});
  CHECK(batch.labels == std::vector<int64_t>{7, 5, 5});
  REQUIRE(batch.images.size() == 6);
  CHECK(batch.images[0] == Approx(3 / 127.5 - 1));
  CHECK(batch.images[2] == -1);
  CHECK(batch.images[3] == 1);
  CHECK_THROWS_AS(set.images(std::vector<int64_t>{3}), InternalError);

  const auto view = batch.view();
  CHECK(view.examples == 3);
  CHECK(view.targets == 3);
  REQUIRE(view.parts.size() == 2);
  CHECK(view.parts[0].shape == std::vector<int64_t>{1, 1, 2});
  CHECK(std::memcmp(view.parts[0].bytes.data(), batch.images.data(), 6 * sizeof(float)) == 0);
  CHECK(view.parts[1].bytes.size() == 3 * sizeof(int64_t));
}

TEST_CASE("images and labels that do not belong together are refused") {
  TemporaryFolder folder;
  write_file(folder / "images", idx_text({2, 1, 1}, "ab"));
  write_file(folder / "more", idx_text({3}, "abc"));
  write_file(folder / "none", idx_text({0, 1, 1}, ""));
  write_file(folder / "no labels", idx_text({0}, ""));
  CHECK_THROWS_AS(ImageSet(folder / "images", folder / "more"), DataError);
  CHECK_THROWS_AS(ImageSet(folder / "more", folder / "images"), DataError);
  CHECK_THROWS_AS(ImageSet(folder / "none", folder / "no labels"), DataError);
}

}  // namespace farstep
