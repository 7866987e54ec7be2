#include "trainer/base/checksum.h"

#include <random>
#include <vector>

#include "tests/support/catch.h"

using namespace farstep;

namespace {

std::vector<std::byte> random_bytes(std::size_t size) {
  std::mt19937 random(1);
  std::vector<std::byte> bytes(size);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

}  // namespace

TEST_CASE("no bytes have the published XXH3 checksum") {
  CHECK(checksum({}) == 0x2d06800538d394c2);
  CHECK(StreamingChecksum().value() == 0x2d06800538d394c2);
}

TEST_CASE("pieces of any size give the checksum of the whole") {
  for (const std::size_t size : {1, 3, 16, 240, 241, 1023, 1024, 4097, 100'001}) {
    const auto bytes = random_bytes(size);
    for (const std::size_t piece : {1, 7, 256, 1000, 200'000}) {
      if (size / piece > 5000) continue;
      StreamingChecksum streaming;
      for (std::size_t place = 0; place < size; place += piece) {
        streaming.update(std::span(bytes).subspan(place, std::min(piece, size - place)));
      }
      streaming.update({});
      REQUIRE(streaming.value() == checksum(bytes));
      REQUIRE(streaming.value() == checksum(bytes));  // looking does not end it
    }
  }
}

TEST_CASE("every flipped bit changes the checksum") {
  auto bytes = random_bytes(300);
  const auto whole = checksum(bytes);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    REQUIRE(checksum(bytes) != whole);
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
  }
}

TEST_CASE("a moved checksum goes on") {
  const auto bytes = random_bytes(500);
  StreamingChecksum first;
  first.update(std::span(bytes).first(200));
  StreamingChecksum second = std::move(first);
  second.update(std::span(bytes).subspan(200));
  CHECK(second.value() == checksum(bytes));
}

TEST_CASE("checksum text is 16 lower-case digits") {
  CHECK(checksum_text(0) == "0000000000000000");
  CHECK(checksum_text(0xABCDEF) == "0000000000abcdef");
  CHECK(checksum_text(~uint64_t{0}) == "ffffffffffffffff");
}
