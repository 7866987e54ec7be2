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
  while (auto document = source.next()) {
    CHECK(document->fault.empty());
    all.push_back(std::move(document->text));
  }
  return all;
}

// The faults of all documents; "" of a good one.
std::vector<std::string> faults(const std::filesystem::path& path, const std::string& field) {
  std::vector<std::string> all;
  TextSource source(path, field);
  while (auto document = source.next()) all.push_back(document->fault);
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

TEST_CASE("a bad line has a fault with its number, and the next line is read") {
  TemporaryFolder folder;
  const auto path = folder / "a.jsonl";
  const std::pair<const char*, const char*> rows[] = {
      {"{\"text\": \"cut o", "line 3: not JSON at character 16"},
      {"[1]", "line 3: not a JSON object"},
      {"{\"body\": \"x\"}", "line 3: has no string member \"text\""},
      {"{\"text\": 1}", "line 3: has no string member \"text\""},
      {"{\"text\": [\"x\"], \"a\": {\"text\": \"x\"}}", "line 3: has no string member \"text\""},
      {"{\"text\": \"\xff\"}", "line 3: not JSON at character 11"}};
  for (const auto& [bad, fault] : rows) {
    INFO(bad);
    write_file(path, std::string("{\"text\": \"fine\"}\n\n") + bad + "\n{\"text\": \"\"}\n");
    CHECK(faults(path, "text") == std::vector<std::string>{"", fault, ""});
    CHECK(count_documents(path) == 3);
  }
}

TEST_CASE("the text is in the member that is named") {
  TemporaryFolder folder;
  write_file(folder / "a.jsonl", R"({"text": "no", "content": "yes", "meta": {"content": "no"}})");
  TextSource source(folder / "a.jsonl", "content");
  CHECK(source.next()->text == "yes");
  CHECK_FALSE(source.next());
  CHECK(faults(folder / "a.jsonl", "body") ==
        std::vector<std::string>{"line 1: has no string member \"body\""});
}

TEST_CASE("a plain file that is no UTF-8 text has a fault with its byte") {
  TemporaryFolder folder;
  const auto fault_of = [&](const std::string& content) {
    write_file(folder / "a.txt", content);
    return faults(folder / "a.txt", "text").at(0);
  };
  CHECK(fault_of("caf\u00e9\r\n\t\x01").empty());
  CHECK_THAT(fault_of("abc\xff"), Catch::StartsWith("byte 3: not UTF-8 text"));
  CHECK_THAT(fault_of("\x89PNG\r\n"), Catch::StartsWith("byte 0: not UTF-8 text"));
  CHECK_THAT(fault_of(std::string("ab\0c", 4)), Catch::StartsWith("byte 2: a byte of 0"));
  CHECK_THAT(fault_of(std::string("\xff\xfe"
                                  "a\0",
                                  4)),
             Catch::Contains("iconv -f UTF-16"));
}

TEST_CASE("a file without text has no document") {
  TemporaryFolder folder;
  const std::pair<const char*, std::string> files[] = {
      {"a.txt", ""},         {"a.jsonl", ""}, {"b.jsonl", "\n \n"},
      {"a.gz", gzipped("")}, {"b.gz", ""},    {"a.zst", zstd_compressed("")},
      {"b.zst", ""}};
  for (const auto& [name, content] : files) {
    INFO(name);
    write_file(folder / name, content);
    CHECK(documents(folder / name).empty());
    CHECK(count_documents(folder / name) == 0);
  }
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
