#include "trainer/checkpoint/checksummed_writer.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "trainer/base/system/file.h"

namespace farstep {
namespace {

constexpr std::size_t kSector = 4096, kBlock = std::size_t{1} << 22;

std::vector<std::byte> random_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  std::minstd_rand random(static_cast<unsigned>(count + 1));
  for (auto& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// In pieces of 1, 2, 4, ... bytes, so that they begin anywhere in a sector.
WrittenFile write_in_pieces(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  ChecksummedWriter file(path, {});
  for (std::size_t piece = 1; !bytes.empty(); piece *= 2) {
    const auto next = bytes.first(std::min(piece, bytes.size()));
    file.write(next);
    bytes = bytes.subspan(next.size());
  }
  return file.finish();
}

TEST_CASE("a written file has all bytes, and their checksum") {
  const TemporaryFolder folder;
  // In the memory, where no write is direct; and in the place of the tests' files.
  for (const auto& root : {folder.path(), std::filesystem::path("/dev/shm")}) {
    const auto path = root / folder.path().filename();
    INFO(path);
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{1}, kSector - 1, kSector, kSector + 1, kBlock - 1, kBlock,
          kBlock + 1, 3 * kBlock, 3 * kBlock + 5 * kSector, 3 * kBlock + 5 * kSector + 7}) {
      const auto bytes = random_bytes(size);
      const auto written = write_in_pieces(path, bytes);
      INFO(size << " bytes");
      CHECK(written.bytes == static_cast<int64_t>(size));
      CHECK(written.checksum == checksum(bytes));
      const auto text = read_file(path);
      CHECK(std::ranges::equal(std::as_bytes(std::span(text)), bytes));
    }
    std::filesystem::remove(path);
  }
}

TEST_CASE("a file that was longer is replaced") {
  const TemporaryFolder folder;
  write_in_pieces(folder / "file", random_bytes(2 * kBlock));
  const auto bytes = random_bytes(10);
  CHECK(write_in_pieces(folder / "file", bytes).bytes == 10);
  CHECK(std::filesystem::file_size(folder / "file") == 10);
}

TEST_CASE("a file that cannot be written is named with the reason") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(ChecksummedWriter(folder / "no" / "file", {}),
                    Catch::Contains("no/file: offset 0: cannot be written: No such file"));
  // A disk that is full from the beginning.
  ChecksummedWriter full("/dev/full", {});
  const auto bytes = random_bytes(2 * kBlock);
  CHECK_THROWS_WITH(full.write(bytes), Catch::Contains("/dev/full: offset 0: cannot be written: "
                                                       "No space left on device"));
}

TEST_CASE("a file is given up when a stop is requested") {
  const TemporaryFolder folder;
  std::stop_source stop;
  ChecksummedWriter file(folder / "file", stop.get_token());
  const auto bytes = random_bytes(2 * kBlock);
  file.write(bytes);
  stop.request_stop();
  CHECK_THROWS_WITH(file.write(bytes),
                    Catch::Contains(fmt::format("given up at offset {}", 2 * kBlock)));
}

}  // namespace
}  // namespace farstep
