#include "trainer/base/system/file.h"

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "trainer/base/error.h"

using namespace farstep;
using Catch::Contains;
namespace fs = std::filesystem;

TEST_CASE("what is written durably is read again") {
  const TemporaryFolder folder;
  std::string every_byte;
  for (int i = 0; i < 256; ++i) every_byte += static_cast<char>(i);
  for (const auto& content :
       {std::string(), std::string("x"), every_byte, std::string(1'000'001, 'q')}) {
    write_file_durably(folder / "file", content);
    CHECK(read_file(folder / "file") == content);
  }
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("a write that fails leaves the old content") {
  const TemporaryFolder folder;
  write_file_durably(folder / "file", "old");
  fs::create_symlink("/dev/full", folder / "file.partial");
  CHECK_THROWS_WITH(write_file_durably(folder / "file", "new"),
                    Contains("file.partial: cannot be written: No space left"));
  CHECK(read_file(folder / "file") == "old");
  CHECK_THROWS_AS(write_file_durably(folder / "none" / "file", "new"), DataError);
  fs::create_directories(folder / "taken" / "below");
  CHECK_THROWS_WITH(write_file_durably(folder / "taken", "new"), Contains("renamed into place"));
}

TEST_CASE("a file that cannot be read is named with the reason") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(read_file(folder / "none"), Contains("none") && Contains("No such file"));
  CHECK_THROWS_WITH(read_file(folder.path()), Contains("Is a directory"));
  CHECK_THROWS_AS(read_file(folder / "none"), DataError);
}

TEST_CASE("files of the kernel that report no size are read") {
  CHECK_THAT(read_file("/proc/self/status"), Contains("Pid:"));
}

TEST_CASE("a path without a folder is in the working folder") {
  const TemporaryFolder folder;
  const auto before = fs::current_path();
  fs::current_path(folder.path());
  write_file_durably("here", "content");
  fs::current_path(before);
  CHECK(read_file(folder / "here") == "content");
}

TEST_CASE("folders are made with their parents and files in the way are named") {
  const TemporaryFolder folder;
  make_folder(folder / "a" / "b");
  make_folder(folder / "a" / "b");
  CHECK(fs::is_directory(folder / "a" / "b"));
  write_file_durably(folder / "file", "");
  CHECK_THROWS_WITH(make_folder(folder / "file" / "b"), Contains("file/b: cannot be made"));
  CHECK_THROWS_AS(sync_to_disk(folder / "none"), DataError);
}

TEST_CASE("a file that is removed is gone, and may be gone before") {
  const TemporaryFolder folder;
  write_file_durably(folder / "file", "content");
  for (int i = 0; i < 2; ++i) {
    remove_file_durably(folder / "file");
    CHECK_FALSE(fs::exists(folder / "file"));
  }
  make_folder(folder / "a" / "b");
  CHECK_THROWS_WITH(remove_file_durably(folder / "a"), Contains("a: cannot be removed"));
  CHECK_THROWS_AS(remove_file_durably(folder / "none" / "file"), DataError);
}

TEST_CASE("a staged folder takes the place of another or of nothing") {
  const TemporaryFolder folder;
  const auto staged = folder / "staged";
  const auto target = folder / "target";
  for (const std::string content : {"first", "second"}) {
    make_folder(staged);
    write_file_durably(staged / content, content);
    replace_folder_durably(staged, target);
    CHECK_FALSE(fs::exists(staged));
    CHECK(read_file(target / content) == content);
  }
  CHECK_FALSE(fs::exists(target / "first"));
  CHECK_THROWS_AS(replace_folder_durably(staged, target), DataError);
  CHECK(read_file(target / "second") == "second");
  remove_folder(target);
  remove_folder(target);
  CHECK_FALSE(fs::exists(target));
}
