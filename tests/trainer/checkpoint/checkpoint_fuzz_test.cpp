// Damage of every byte: it is noticed, or does no harm.

#include <algorithm>

#include "tests/support/catch.h"
#include "tests/support/log_capture.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "tests/trainer/checkpoint/owned_tensors.h"
#include "tests/trainer/checkpoint/small_state.h"
#include "trainer/base/checksum.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/checkpoint/safetensors_writer.h"
#include "trainer/checkpoint/train_state.h"

using namespace farstep;

TEST_CASE("no truncation of a file is taken for a file") {
  const TemporaryFolder folder;
  write_safetensors(folder / "t", tensors_of_all_kinds().buffers());
  const auto whole = read_file(folder / "t");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write_file(folder / "cut", whole.substr(0, size));
    REQUIRE_THROWS_AS(SafetensorsFile(folder / "cut"), DataError);
  }
}

TEST_CASE("a flipped byte anywhere is refused or leaves every tensor within the file") {
  const TemporaryFolder folder;
  write_safetensors(folder / "t", tensors_of_all_kinds().buffers());
  const auto whole = read_file(folder / "t");
  for (std::size_t place = 0; place < whole.size(); ++place) {
    for (const int flip : {0x01, 0x10, 0x80, 0xFF}) {
      auto damaged = whole;
      damaged[place] = static_cast<char>(damaged[place] ^ flip);
      write_file(folder / "damaged", damaged);
      try {
        const SafetensorsFile file(folder / "damaged");
        uint64_t sum = 0;  // touches every byte
        std::size_t bytes = 0;
        for (const auto& entry : file.entries()) {
          sum += checksum(entry.bytes);
          bytes += entry.bytes.size();
        }
        REQUIRE((bytes < whole.size() && sum != 0));
      } catch (const DataError&) {
        SUCCEED();
      }
    }
  }
}

TEST_CASE("whatever byte of a checkpoint is flipped it is skipped or loads equal") {
  const TemporaryFolder root;
  const SmallState saved(4, 0);
  const auto entry = save_checkpoint(root.path(), saved.state).entry;
  const LogCapture quiet;
  for (const auto& item : std::filesystem::directory_iterator(entry.folder)) {
    const auto& file = item.path();
    const auto whole = read_file(file);
    for (std::size_t place = 0; place < whole.size(); ++place) {
      auto damaged = whole;
      damaged[place] = char(damaged[place] ^ (1 << place % 8));
      write_file(file, damaged);
      for (const auto& survivor : resumable_checkpoints(root.path())) {
        SmallState loaded(4, 0, SmallState::kZeros);
        load_checkpoint(survivor, loaded.state);
        REQUIRE(loaded == saved);
      }
    }
    write_file(file, whole);
  }
  CHECK(resumable_checkpoints(root.path()).size() == 1);
  // The warnings name the damage, and stay text: a log with other bytes is a binary file to grep.
  const auto log = quiet.text();
  CHECK_THAT(log, Catch::Contains("not valid JSON"));
  CHECK(std::ranges::all_of(
      log, [](char byte) { return byte == '\n' || (byte >= ' ' && byte <= '~'); }));
}
