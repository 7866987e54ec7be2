#include "trainer/data/images/cifar_file.h"

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "tests/trainer/data/images/cifar_files.h"
#include "trainer/base/error.h"

namespace farstep {

using Catch::Contains;

TEST_CASE("records of CIFAR-10 are a label and the red, green and blue pixels") {
  TemporaryFolder folder;
  std::string pixels;
  for (int i = 0; i < 3072; ++i) pixels += static_cast<char>(i * 7);
  write_file(folder / "a.bin", '\3' + pixels + cifar_record(9, 200));
  LabelledImages images;
  append_cifar_file(folder / "a.bin", images, 2);
  append_cifar_file(folder / "a.bin", images, 2);
  CHECK(images.shape == ImageShape{3, 32, 32});
  CHECK(images.labels == std::vector<uint8_t>{3, 9, 3, 9});
  REQUIRE(images.pixels.size() == 4 * 3072);
  for (std::size_t i = 0; i < 3072; ++i) {
    CHECK(images.image(2)[i] == static_cast<uint8_t>(i * 7));
    CHECK(images.image(3)[i] == 200);
  }
}

TEST_CASE("a file that is not whole or foreign is refused by its name") {
  TemporaryFolder folder;
  const auto refusal = [&](const std::string& text) -> std::string {
    write_file(folder / "a.bin", text);
    LabelledImages images;
    try {
      append_cifar_file(folder / "a.bin", images, 2);
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  };
  const auto good = cifar_record(0, 1) + cifar_record(9, 2);
  CHECK(refusal(good).empty());
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, good.size() / 2, good.size() - 1}) {
    CHECK_THAT(refusal(good.substr(0, size)),
               Contains("a.bin: has " + std::to_string(size) + " bytes") && Contains("has 6146"));
  }
  CHECK_THAT(refusal(good + "x"), Contains("a.bin: has 6147 bytes"));
  CHECK_THAT(refusal(cifar_record(0, 1) + cifar_record(10, 2)),
             Contains("a.bin: byte 3073: label 10 is above 9"));
  LabelledImages images;
  CHECK_THROWS_WITH(append_cifar_file(folder / "none", images), Contains("none: cannot be read"));
}

}  // namespace farstep
