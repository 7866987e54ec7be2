#include "trainer/data/images/idx_file.h"

#include <sys/resource.h>
#include <zlib.h>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "tests/trainer/data/images/idx_files.h"
#include "trainer/base/error.h"

namespace farstep {

using Catch::Contains;

TEST_CASE("an idx file has its shape and bytes, compressed or not") {
  TemporaryFolder folder;
  const auto text = idx_text({2, 1, 3}, {1, 2, 3, 4, 5, '\xff'});
  write_file(folder / "plain", text);
  const auto file = gzopen((folder / "packed.gz").c_str(), "wb");
  REQUIRE(gzwrite(file, text.data(), static_cast<unsigned>(text.size())) > 0);
  REQUIRE(gzclose(file) == Z_OK);
  for (const char* name : {"plain", "packed.gz"}) {
    const auto read = read_idx_file(folder / name);
    CHECK(read.shape == std::vector<int64_t>{2, 1, 3});
    CHECK(read.values == std::vector<uint8_t>{1, 2, 3, 4, 5, 255});
  }
}

TEST_CASE("an idx file that is not whole is refused by its name") {
  TemporaryFolder folder;
  const auto path = folder / "a.idx";
  const auto good = idx_text({2, 3}, "abcdef");
  const auto refusal = [&](const std::string& text) -> std::string {
    write_file(path, text);
    try {
      read_idx_file(path);
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(refusal(good).empty());
  for (std::size_t size = 0; size < good.size(); ++size) {
    CHECK_THAT(refusal(good.substr(0, size)), Contains("a.idx: is cut short"));
  }
  CHECK_THAT(refusal(good + "g"), Contains("a.idx: goes on after"));
  CHECK_THAT(refusal("\x1f" + good.substr(1)), Contains("a.idx: is not an IDX file"));
  CHECK_THAT(refusal(std::string("\0\0\x0d\x01", 4)), Contains("is not an IDX file of bytes"));
  CHECK_THAT(refusal(idx_text({1 << 30, 1 << 30, 1 << 30}, "")), Contains("no memory holds"));
  CHECK_THROWS_WITH(read_idx_file(folder / "none"), Contains("none: cannot be opened"));
}

TEST_CASE("a small compressed idx file with many values is refused before they are read") {
  TemporaryFolder folder;
  const std::string values(std::size_t{80} << 20, 'x');
  const auto text = idx_text({80, 1 << 20}, values);
  const auto file = gzopen((folder / "large.gz").c_str(), "wb");
  REQUIRE(gzwrite(file, text.data(), static_cast<unsigned>(text.size())) > 0);
  REQUIRE(gzclose(file) == Z_OK);
  CHECK_THROWS_WITH(read_idx_file(folder / "large.gz"),
                    Contains("takes 80 MiB") && Contains("64 MiB") && Contains("decompress it"));
  write_file(folder / "plain", text);
  CHECK(read_idx_file(folder / "plain").values.size() == values.size());
}

// A shape of 4 GiB in a file of 20 bytes took 4 GiB of memory before the file was read.
TEST_CASE("an idx file takes no more memory than it has values") {
  TemporaryFolder folder;
  write_file(folder / "a.idx", idx_text({1 << 16, 1 << 16}, "abcdef"));
  const auto peak_kib = [] {
    rusage use{};
    REQUIRE(getrusage(RUSAGE_SELF, &use) == 0);
    return use.ru_maxrss;
  };
  const auto before = peak_kib();
  CHECK_THROWS_WITH(read_idx_file(folder / "a.idx"), Contains("a.idx: is cut short"));
  CHECK(peak_kib() - before < 1 << 20);
}

TEST_CASE("images and labels that do not belong together are refused by the wrong one's name") {
  TemporaryFolder folder;
  write_file(folder / "images", idx_text({2, 1, 1}, "ab"));
  write_file(folder / "more", idx_text({3}, "abc"));
  write_file(folder / "none", idx_text({0, 1, 1}, ""));
  write_file(folder / "no labels", idx_text({0}, ""));
  CHECK_THROWS_WITH(read_idx_images(folder / "images", folder / "more"),
                    Contains("more: is not one label for each of the 2 images"));
  CHECK_THROWS_WITH(read_idx_images(folder / "more", folder / "images"),
                    Contains("more: holds no images"));
  CHECK_THROWS_WITH(read_idx_images(folder / "none", folder / "no labels"),
                    Contains("none: holds no images"));
}

}  // namespace farstep
