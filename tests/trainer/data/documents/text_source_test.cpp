#include "trainer/data/documents/text_source.h"

#include <vector>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "tests/trainer/data/documents/compressed.h"
#include "tests/trainer/data/tokens/sample_text.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

std::vector<std::string> documents(const std::filesystem::path& path) {
  std::vector<std::string> all;
  TextSource source(path, form_of(path).kind);
  while (auto document = source.next()) {
    CHECK(document->fault == TextFault::kNone);
    CHECK(document->what.empty());
    all.push_back(std::move(document->text));
  }
  return all;
}

// The faults of all documents; "" of a good one.
std::vector<std::string> faults(const std::filesystem::path& path, const std::string& field) {
  std::vector<std::string> all;
  TextSource source(path, form_of(path).kind, field);
  while (auto document = source.next()) all.push_back(document->what);
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
      CHECK(count_documents(folder / name, form_of(folder / name).kind) == 1);
      TextSource source(folder / name, FileKind::kText);
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
    CHECK(documents(folder / name) == expected);
    CHECK(count_documents(folder / name, form_of(folder / name).kind) == 3);
  }
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
      {"{\"text\": \"cut o", "line 3: JSON that is cut short"},
      {"[1]", "line 3: not a JSON object"},
      {"{\"body\": \"x\"}", "line 3: has no member \"text\""},
      {"{\"text\": 1}", "line 3: member \"text\" is a number, not a string"},
      {"{\"text\": null}", "line 3: member \"text\" is null, not a string"},
      {"{\"text\": 1 x", "line 3: not JSON at character 12"},
      {"{\"text\": [\"x\"], \"a\": {\"text\": \"x\"}}",
       "line 3: member \"text\" is a list, not a string"},
      {"{\"text\": \"\xff\"}", "line 3: member \"text\" is not UTF-8 at its byte 0"}};
  for (const auto& [bad, fault] : rows) {
    INFO(bad);
    write_file(path, std::string("{\"text\": \"fine\"}\n\n") + bad + "\n{\"text\": \"\"}\n");
    CHECK(faults(path, "text") == std::vector<std::string>{"", fault, ""});
    CHECK(count_documents(path, FileKind::kJsonLines) == 3);
  }
}

TEST_CASE("the text is in the member that is named") {
  TemporaryFolder folder;
  write_file(folder / "a.jsonl", R"({"text": "no", "content": "yes", "meta": {"content": "no"}})");
  TextSource source(folder / "a.jsonl", FileKind::kJsonLines, "content");
  CHECK(source.next()->text == "yes");
  CHECK_FALSE(source.next());
  CHECK(faults(folder / "a.jsonl", "body") ==
        std::vector<std::string>{"line 1: has no member \"body\""});
}

TEST_CASE("a plain file that is no UTF-8 text has a fault with its byte") {
  TemporaryFolder folder;
  const auto fault_of = [&](const std::string& content) {
    write_file(folder / "a.txt", content);
    return faults(folder / "a.txt", "text").at(0);
  };
  CHECK(fault_of("caf\u00e9\r\n\t\x01").empty());
  CHECK_THAT(fault_of("abc\xff"), Catch::StartsWith("byte 3: not UTF-8 text"));
  CHECK_THAT(fault_of(std::string("ab\0c", 4)), Catch::StartsWith("byte 2: a byte of 0"));
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
    CHECK(count_documents(folder / name, form_of(folder / name).kind) == 0);
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

TEST_CASE("a byte-order mark is no part of a text, of lines, or of what is compressed") {
  TemporaryFolder folder;
  const std::string mark = "\xef\xbb\xbf";
  write_file(folder / "a.txt", mark + "one");
  write_file(folder / "a.txt.gz", gzipped(mark + "one"));
  write_file(folder / "a.jsonl", mark + "\n{\"text\": \"one\"}\n");
  write_file(folder / "a.json.zst", zstd_compressed(mark + "{\"text\": \"one\"}\n"));
  for (const auto* name : {"a.txt", "a.txt.gz", "a.jsonl", "a.json.zst"}) {
    INFO(name);
    CHECK(documents(folder / name) == std::vector<std::string>{"one"});
  }
  write_file(folder / "a.txt", mark);
  CHECK(documents(folder / "a.txt").empty());
}

TEST_CASE("a zstd stream with a long window is read") {
  TemporaryFolder folder;
  const auto text = sample_text(100'000, 5);
  for (const int window : {28, 31}) {
    write_file(folder / "a.zst", zstd_compressed(text, window));
    CHECK(documents(folder / "a.zst") == std::vector<std::string>{text});
  }
}

TEST_CASE("a small file that is a huge line or window when decompressed is refused") {
  TemporaryFolder folder;
  using Catch::Contains;
  const std::string large(std::size_t{80} << 20, 'x');
  write_file(folder / "a.txt", gzipped(large));
  CHECK_THROWS_WITH(documents(folder / "a.txt"),
                    Contains("64 MiB") && Contains("decompress the file before"));
  write_file(folder / "b.jsonl", zstd_compressed("{\"text\": \"" + large + "\"}\n"));
  CHECK_THROWS_WITH(documents(folder / "b.jsonl"), Contains("64 MiB"));
  CHECK_THROWS_WITH(count_documents(folder / "b.jsonl", FileKind::kJsonLines), Contains("64 MiB"));
  // Lines, each of which is small, but the decoder keeps all of them.
  std::string lines;
  while (lines.size() < large.size()) lines += "{\"text\": \"" + std::string(1000, 'x') + "\"}\n";
  write_file(folder / "c.jsonl", zstd_compressed(lines));
  CHECK(count_documents(folder / "c.jsonl", FileKind::kJsonLines) > 80'000);
  write_file(folder / "d.jsonl", zstd_compressed(lines, 31));
  CHECK_THROWS_WITH(count_documents(folder / "d.jsonl", FileKind::kJsonLines),
                    Contains("zstd window") && Contains("zstd -d --long=31"));
  // As it is, the file is as large as its text.
  write_file(folder / "e.txt", large);
  CHECK(documents(folder / "e.txt").at(0).size() == large.size());
}

}  // namespace farstep
