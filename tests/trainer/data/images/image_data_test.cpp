#include "trainer/data/images/image_data.h"

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/trainer/data/images/cifar_files.h"
#include "tests/trainer/data/images/idx_files.h"
#include "trainer/base/error.h"
#include "trainer/data/images/cifar_file.h"

namespace farstep {

using Catch::Contains;

namespace {

// A folder with both splits as IDX files.
class IdxFolder {
 public:
  explicit IdxFolder(int64_t training = 12, int64_t validation = 5) {
    write_bright_rows(path(), "train", training, 4, 4);
    write_bright_rows(path(), "t10k", validation, 4, 4);
  }
  std::filesystem::path path() const { return folder_.path(); }
  std::string refusal() const {
    try {
      const ImageData data(path());
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("a folder of IDX files has two splits of one shape") {
  const IdxFolder folder;
  CHECK(ImageData::is_in(folder.path()));
  const ImageData data(folder.path());
  CHECK(data.training.size() == 12);
  CHECK(data.validation.size() == 5);
  CHECK(data.training.shape == ImageShape{1, 4, 4});
  CHECK(data.classes == 4);
  CHECK(data.text() == "12 images of 1 x 4 x 4 in 4 classes to train on, 5 to validate on");
}

TEST_CASE("the digest is the images' and labels' and no file's") {
  const IdxFolder folder, same;
  const auto digest = ImageData(folder.path()).digest();
  CHECK(ImageData(same.path()).digest() == digest);
  const IdxFolder longer(13, 5), swapped(5, 12);
  CHECK(ImageData(longer.path()).digest() != digest);
  CHECK(ImageData(swapped.path()).digest() != digest);
  // One label, and one pixel, of the validation split.
  write_file(same.path() / "t10k-labels-idx1-ubyte", idx_text({5}, {0, 1, 2, 3, 1}));
  CHECK(ImageData(same.path()).digest() != digest);
  std::string pixels(5 * 16, '\x20');
  write_file(folder.path() / "t10k-images-idx3-ubyte", idx_text({5, 4, 4}, pixels));
  const auto dark = ImageData(folder.path()).digest();
  pixels.back() = '\x21';
  write_file(folder.path() / "t10k-images-idx3-ubyte", idx_text({5, 4, 4}, pixels));
  CHECK(ImageData(folder.path()).digest() != dark);
}

TEST_CASE("a folder that is not one whole data set of images is refused by name") {
  const TemporaryFolder empty;
  CHECK_FALSE(ImageData::is_in(empty.path()));
  CHECK_FALSE(ImageData::is_in(empty / "nowhere"));
  CHECK_THROWS_WITH(ImageData(empty.path()), Contains(empty.path().string() + ": has no images"));
  const IdxFolder partial, other_shape, other_class, one_class, both;
  std::filesystem::remove(partial.path() / "t10k-labels-idx1-ubyte");
  CHECK_THAT(partial.refusal(), Contains("t10k-labels-idx1-ubyte: is missing"));
  write_bright_rows(other_shape.path(), "t10k", 5, 8, 4);
  CHECK_THAT(other_shape.refusal(), Contains("of 1 x 4 x 4") && Contains("of 1 x 8 x 8"));
  write_bright_rows(other_class.path(), "train", 12, 4, 2);
  CHECK_THAT(other_class.refusal(), Contains("has label 3 to validate on"));
  write_bright_rows(one_class.path(), "train", 12, 4, 1);
  CHECK_THAT(one_class.refusal(), Contains("all of one class"));
  write_file(both.path() / "test_batch.bin", "");
  CHECK_THAT(both.refusal(), Contains("two data sets"));
}

TEST_CASE("CIFAR-10 is five files to train on and one to validate on") {
  const TemporaryFolder folder;
  std::string records;
  for (int64_t i = 0; i < kCifarRecords; ++i) {
    records += cifar_record(static_cast<int>(i % 10), static_cast<int>(i % 256));
  }
  for (const std::string number : {"1", "2", "3", "4", "5"}) {
    write_file(folder / ("data_batch_" + number + ".bin"), records);
  }
  CHECK_THROWS_WITH(ImageData(folder.path()), Contains("test_batch.bin: is missing"));
  write_file(folder / "test_batch.bin", records);
  const ImageData data(folder.path());
  CHECK(data.training.size() == 50'000);
  CHECK(data.validation.size() == 10'000);
  CHECK(data.classes == 10);
  CHECK(data.training.image(49'999).front() == 9'999 % 256);
  write_file(folder / "data_batch_4.bin", records.substr(1));
  CHECK_THROWS_WITH(ImageData(folder.path()), Contains("data_batch_4.bin: has 30729999 bytes"));
}

}  // namespace farstep
