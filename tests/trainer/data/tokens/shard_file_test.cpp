#include "trainer/data/tokens/shard_file.h"

#include <cstring>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"

namespace farstep {

namespace {

constexpr std::size_t kHeaderBytes = 48;

std::vector<int32_t> ids(int64_t count, int64_t vocabulary) {
  std::vector<int32_t> tokens(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<int32_t>((i * 7919 + 13) % static_cast<std::size_t>(vocabulary));
  }
  return tokens;
}

void write_shard(const std::filesystem::path& path, const std::vector<int32_t>& tokens,
                 int64_t vocabulary) {
  ShardWriter writer(path, vocabulary, 2);
  writer.append(tokens);
  writer.finish();
}

template <typename T>
void overwrite(std::string& content, std::size_t offset, T value) {
  std::memcpy(content.data() + offset, &value, sizeof(value));
}

// Makes the header's own checksum hold again.
void seal_header(std::string& content) {
  overwrite(content, 40, checksum(std::as_bytes(std::span(content.data(), 40))));
}

void open_and_verify(const std::filesystem::path& path) {
  ShardFile(path).verify();
}

void require_data_error(const std::filesystem::path& path, const std::string& part) {
  INFO(part);
  try {
    open_and_verify(path);
    FAIL("the shard was accepted");
  } catch (const DataError& error) {
    INFO(error.what());
    CHECK_THAT(error.what(), Catch::Contains(path.string()));
    CHECK_THAT(error.what(), Catch::Contains(part));
  }
}

}  // namespace

TEST_CASE("a shard gives back the tokens that were appended") {
  TemporaryFolder folder;
  const auto path = folder / "train-00000.tokens";
  for (const int64_t vocabulary : {3, 65536, 65537, 200000}) {
    for (const int64_t count : {1, 2, 3, 1000, 300001}) {
      const auto tokens = ids(count, vocabulary);
      {
        ShardWriter writer(path, vocabulary, 2);
        const auto half = static_cast<std::size_t>(count / 2);
        writer.append(std::span(tokens).first(half));
        writer.append({});
        writer.append(std::span(tokens).subspan(half));
        CHECK(writer.num_tokens() == count);
        writer.finish();
      }
      const ShardFile shard(path);
      REQUIRE_NOTHROW(shard.verify());
      CHECK(shard.num_tokens() == count);
      CHECK(shard.header().vocabulary == vocabulary);
      CHECK(shard.header().eos == 2);
      CHECK(shard.header().token_bytes == (vocabulary <= 65536 ? 2 : 4));
      std::vector<int64_t> out(static_cast<std::size_t>(count));
      shard.read(0, out);
      CHECK(std::equal(out.begin(), out.end(), tokens.begin(), tokens.end()));
      std::vector<int64_t> last(1);
      shard.read(count - 1, last);
      CHECK(last[0] == tokens.back());
      CHECK_THROWS_AS(shard.read(count, last), InternalError);
    }
  }
}

TEST_CASE("a shard lies in the file as the format says") {
  TemporaryFolder folder;
  write_shard(folder / "a", {0x0102, 5}, 4096);
  const auto content = read_file(folder / "a");
  REQUIRE(content.size() == kHeaderBytes + 4);
  CHECK(content.substr(0, 8) == "FSTOKENS");
  const auto number = [&](std::size_t offset, std::size_t bytes) {
    uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) {
      value |= uint64_t{static_cast<unsigned char>(content[offset + i])} << (8 * i);
    }
    return value;
  };
  CHECK(number(8, 4) == 1);      // format version
  CHECK(number(12, 4) == 2);     // bytes of a token
  CHECK(number(16, 4) == 4096);  // vocabulary
  CHECK(number(20, 4) == 2);     // eos
  CHECK(number(24, 8) == 2);     // tokens
  CHECK(number(32, 8) == checksum(std::as_bytes(std::span(content).subspan(kHeaderBytes))));
  CHECK(number(40, 8) == checksum(std::as_bytes(std::span(content).first(40))));
  CHECK(number(48, 2) == 0x0102);
}

TEST_CASE("a shard appears only when it is finished") {
  TemporaryFolder folder;
  {
    ShardWriter writer(folder / "a", 10, 2);
    writer.append(ids(100, 10));
    CHECK_FALSE(std::filesystem::exists(folder / "a"));
  }
  CHECK(std::filesystem::is_empty(folder.path()));
  CHECK_THROWS_AS(ShardWriter(folder.path() / "no" / "a", 10, 2), DataError);
}

TEST_CASE("a writer refuses tokens beyond its vocabulary") {
  TemporaryFolder folder;
  ShardWriter writer(folder / "a", 10, 2);
  CHECK_THROWS_AS(writer.append(std::vector<int32_t>{10}), InternalError);
  CHECK_THROWS_AS(writer.append(std::vector<int32_t>{-1}), InternalError);
}

TEST_CASE("every kind of damage to a shard is refused with file and byte") {
  TemporaryFolder folder;
  const auto good = folder / "good";
  const auto bad = folder / "bad";
  write_shard(good, ids(1000, 300), 300);
  const auto content = read_file(good);
  const auto expect = [&](const std::string& damaged, const std::string& part) {
    write_file(bad, damaged);
    require_data_error(bad, part);
  };

  SECTION("a file that ends early") {
    expect("", "byte 0: the file is empty");
    expect(content.substr(0, 10), "byte 10: the file ends inside its header");
    expect(content.substr(0, kHeaderBytes), "byte 48: the file ends here");
    expect(content.substr(0, content.size() - 1), "byte 2047: the file ends here");
    expect(content + "xx", "byte 2050: the file ends here");
  }
  SECTION("a flipped bit anywhere in the header") {
    for (std::size_t i = 0; i < kHeaderBytes; ++i) {
      auto damaged = content;
      damaged[i] ^= 0x10;
      expect(damaged, ": byte ");
    }
  }
  SECTION("a flipped bit in the tokens") {
    auto damaged = content;
    damaged[kHeaderBytes + 500] ^= 0x01;
    expect(damaged, ": byte ");
  }
  SECTION("a token beyond the vocabulary") {
    auto damaged = content;
    overwrite(damaged, kHeaderBytes + 2 * 77, uint16_t{300});
    expect(damaged,
           "byte 202: token id 300 is beyond the vocabulary of 300: the file is corrupt, copy it "
           "or make it again");
  }
  SECTION("a header that makes no sense though its checksum holds") {
    const auto expect_header = [&](std::size_t offset, uint32_t value, const std::string& part) {
      auto damaged = content;
      overwrite(damaged, offset, value);
      seal_header(damaged);
      expect(damaged, part);
    };
    expect_header(8, 2, "byte 8: format version 2");
    expect_header(12, 3, "byte 12: token width 3");
    expect_header(20, 300, "byte 20: eos id 300");
    expect_header(24, 999, "announces 999 tokens");
    auto empty = content.substr(0, kHeaderBytes);
    overwrite(empty, 24, uint64_t{0});
    seal_header(empty);
    expect(empty, "byte 24: the shard is empty");
  }
  SECTION("no file at all") {
    require_data_error(folder / "missing", "cannot be opened");
    require_data_error(folder.path(), "no regular file");
  }
}

}  // namespace farstep
