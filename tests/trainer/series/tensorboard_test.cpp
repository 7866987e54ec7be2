#include "trainer/series/tensorboard.h"

#include <cstring>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "trainer/base/system/file.h"

namespace farstep {

namespace {

uint32_t masked(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

// Returns the records of a file, after their checksums were checked.
std::vector<std::string> records_of(const std::string& file) {
  std::vector<std::string> records;
  for (std::size_t at = 0; at < file.size();) {
    uint64_t length = 0;
    uint32_t crc = 0;
    REQUIRE(file.size() - at >= 12);
    std::memcpy(&length, &file[at], 8);
    std::memcpy(&crc, &file[at + 8], 4);
    REQUIRE(crc == masked(std::string_view(file).substr(at, 8)));
    REQUIRE(file.size() - at >= 16 + length);
    records.push_back(file.substr(at + 12, length));
    std::memcpy(&crc, &file[at + 12 + length], 4);
    REQUIRE(crc == masked(records.back()));
    at += 16 + length;
  }
  return records;
}

}  // namespace

// The vectors of RFC 3720, appendix B.4.
TEST_CASE("the checksum is CRC-32C") {
  CHECK(crc32c("") == 0);
  CHECK(crc32c("123456789") == 0xe3069283);
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aa);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62a8ab43);
}

// The bytes are what protocol buffers prescribe for these messages.
TEST_CASE("a file has its version and each point as a message") {
  const std::vector<Series> series = {{"a", "x", {{1.0, 300, 0.5}}}};
  const auto records = records_of(tensorboard_events(series));
  REQUIRE(records.size() == 2);
  const std::string one("\x09\0\0\0\0\0\0\xf0\x3f", 9);
  CHECK(records[0] == one +
                          "\x1a\x0d"
                          "brain.Event:2");
  CHECK(records[1] == one + "\x10\xac\x02" + "\x2a\x0a" + "\x0a\x08" + "\x0a\x01x" +
                          std::string("\x15\0\0\0\x3f", 5));
}

TEST_CASE("each owner has a folder and no name leads out of it") {
  const TemporaryFolder folder;
  const std::vector<Series> series = {{"run", "x", {{1, 1, 1}}},
                                      {"run", "y", {{1, 1, 1}}},
                                      {"../b", "x", {{1, 1, 1}}},
                                      {"..", "x", {{1, 1, 1}}}};
  write_tensorboard(series, folder.path());
  CHECK(records_of(read_file(folder / "run" / "events.out.tfevents.farstep")).size() == 3);
  CHECK(records_of(read_file(folder / ".._b" / "events.out.tfevents.farstep")).size() == 2);
  CHECK(records_of(read_file(folder / "_.." / "events.out.tfevents.farstep")).size() == 2);
}

}  // namespace farstep
