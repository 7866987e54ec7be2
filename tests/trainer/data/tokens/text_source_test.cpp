#include "trainer/data/tokens/text_source.h"

#include <zlib.h>
#include <zstd.h>

#include <vector>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "tests/trainer/data/tokens/sample_text.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"

namespace farstep {

namespace {

std::string gzipped(const std::string& text) {
  TemporaryFolder folder;
  const auto path = folder / "a.gz";
  const gzFile file = ::gzopen(path.c_str(), "wb");
  REQUIRE(::gzwrite(file, text.data(), static_cast<unsigned>(text.size())) ==
          static_cast<int>(text.size()));
  REQUIRE(::gzclose(file) == Z_OK);
  return read_file(path);
}

std::string zstd_compressed(const std::string& text) {
  std::string out(::ZSTD_compressBound(text.size()), '\0');
  const auto size = ::ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3);
  REQUIRE_FALSE(::ZSTD_isError(size));
  out.resize(size);
  return out;
}

std::vector<std::string> documents(const std::filesystem::path& path) {
  std::vector<std::string> all;
  TextSource source(path);
  while (auto document = source.next()) all.push_back(std::move(*document));
  return all;
}

void require_data_error(const std::filesystem::path& path, const std::string& part) {
  try {
    documents(path);
    FAIL(path.string() + " was accepted");
  } catch (const DataError& error) {
    INFO(error.what());
    CHECK_THAT(error.what(), Catch::Contains(path.string()));
    CHECK_THAT(error.what(), Catch::Contains(part));
  }
}

}  // namespace

TEST_CASE("a plain text is one document however it is compressed") {
  TemporaryFolder folder;
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{1000}, std::size_t{700001}}) {
    const auto text = sample_text(bytes, 3);
    write_file(folder / "a.txt", text);
    write_file(folder / "a.txt.gz", gzipped(text));
    write_file(folder / "a.zst", zstd_compressed(text));
    for (const auto* name : {"a.txt", "a.txt.gz", "a.zst"}) {
      CHECK(documents(folder / name) == std::vector<std::string>{text});
      CHECK(count_documents(folder / name) == 1);
      TextSource source(folder / name);
      source.next();
      CHECK(source.file_bytes_read() ==
            static_cast<int64_t>(std::filesystem::file_size(folder / name)));
    }
  }
}

TEST_CASE("streams of several members read as one") {
  TemporaryFolder folder;
  write_file(folder / "a.gz", gzipped("one ") + gzipped("two"));
  write_file(folder / "a.zst", zstd_compressed("one ") + zstd_compressed("two"));
  CHECK(documents(folder / "a.gz") == std::vector<std::string>{"one two"});
  CHECK(documents(folder / "a.zst") == std::vector<std::string>{"one two"});
}

TEST_CASE("each line of JSONL is a document") {
  TemporaryFolder folder;
  const std::string lines =
      "{\"text\": \"one\\ntwo \\u00e9\", \"id\": 7}\n"
      "\n"
      "{\"text\": \"\"}\r\n"
      "{\"id\": {\"text\": 1}, \"text\": \"last, without newline\"}";
  const std::vector<std::string> expected = {"one\ntwo \u00e9", "", "last, without newline"};
  write_file(folder / "a.jsonl", lines);
  write_file(folder / "a.jsonl.gz", gzipped(lines));
  write_file(folder / "a.jsonl.zst", zstd_compressed(lines));
  for (const auto* name : {"a.jsonl", "a.jsonl.gz", "a.jsonl.zst"}) {
    CHECK(is_jsonl(folder / name));
    CHECK(documents(folder / name) == expected);
    CHECK(count_documents(folder / name) == 3);
  }
  CHECK_FALSE(is_jsonl("jsonl"));
  CHECK_FALSE(is_jsonl("a.jsonl.txt"));
}

TEST_CASE("lines are whole wherever the buffer ends") {
  TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 3; ++i) lines += "{\"text\": \"" + std::string(200000, 'x') + "\"}\n";
  write_file(folder / "a.jsonl", lines);
  CHECK(documents(folder / "a.jsonl") == std::vector<std::string>(3, std::string(200000, 'x')));
}

TEST_CASE("a bad line is refused with its number") {
  TemporaryFolder folder;
  const auto path = folder / "a.jsonl";
  for (const auto* bad : {"{\"text\": \"cut o", "[1]", "{\"body\": \"x\"}", "{\"text\": 1}",
                          "{\"text\": \"\xff\"}"}) {
    INFO(bad);
    write_file(path, std::string("{\"text\": \"fine\"}\n\n") + bad + "\n");
    require_data_error(path, "line 3: ");
  }
}

TEST_CASE("a file without text is refused") {
  TemporaryFolder folder;
  write_file(folder / "a.txt", "");
  require_data_error(folder / "a.txt", "byte 0");
  write_file(folder / "a.jsonl", "");
  require_data_error(folder / "a.jsonl", "byte 0");
  write_file(folder / "a.gz", gzipped(""));
  require_data_error(folder / "a.gz", "byte ");
  write_file(folder / "b.gz", "");
  require_data_error(folder / "b.gz", "byte 0");
  write_file(folder / "a.zst", zstd_compressed(""));
  require_data_error(folder / "a.zst", "byte ");
  write_file(folder / "b.zst", "");
  require_data_error(folder / "b.zst", "byte 0");
  require_data_error(folder / "missing.txt", "cannot be opened");
  require_data_error(folder / "missing.gz", "cannot be opened");
  require_data_error(folder / "missing.zst", "cannot be opened");
}

TEST_CASE("truncated and corrupt streams are refused with file and byte") {
  TemporaryFolder folder;
  const auto text = sample_text(100000, 4);
  const auto expect = [&](const char* name, const std::string& content) {
    write_file(folder / name, content);
    require_data_error(folder / name, "byte ");
  };
  for (const auto& [name, whole] :
       {std::pair{"a.gz", gzipped(text)}, std::pair{"a.zst", zstd_compressed(text)}}) {
    for (const std::size_t kept :
         {std::size_t{3}, std::size_t{12}, whole.size() / 2, whole.size() - 1}) {
      INFO(name << " cut to " << kept);
      expect(name, whole.substr(0, kept));
    }
    auto flipped = whole;
    flipped[whole.size() / 2] ^= 0x55;
    if (std::string_view(name) == "a.gz") expect(name, flipped);  // zstd has no checksum here
    expect(name, "plain text under a false name, long enough for any header");
  }
}

}  // namespace farstep
