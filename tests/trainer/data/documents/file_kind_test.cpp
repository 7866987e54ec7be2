#include "trainer/data/documents/file_kind.h"

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "tests/trainer/data/documents/compressed.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

const std::string kLines = "{\"text\": \"one\"}\n{\"text\": \"two\"}\n";

FileForm form(const std::string& name, const std::string& content) {
  TemporaryFolder folder;
  write_file(folder / name, content);
  return form_of(folder / name);
}

}  // namespace

TEST_CASE("a file's kind is that of its name, without regard to case, and of its bytes") {
  for (const std::string name : {"a.jsonl", "a.ndjson", "a.jsonlines", "a.json", "a.JSONL",
                                 "a.Json", "part-00000", "part.00001"}) {
    INFO(name);
    CHECK(form(name, kLines).kind == FileKind::kJsonLines);
    CHECK(form(name, "\xef\xbb\xbf" + kLines).kind == FileKind::kJsonLines);
    CHECK(form(name + ".gz", gzipped(kLines)).kind == FileKind::kJsonLines);
    CHECK(form(name + ".ZST", zstd_compressed(kLines)).kind == FileKind::kJsonLines);
    // Compressed by its bytes, though its name does not say so.
    CHECK(form(name, gzipped(kLines)).kind == FileKind::kJsonLines);
  }
  for (const std::string name :
       {"a.txt", "a.TXT", "README.md", "a.py", "Makefile", "wiki.train.raw", "news.2008",
        "a.txt.gz", "a.json.txt", "jsonl", "a.jsonl.txt"}) {
    INFO(name);
    const auto text = name.ends_with(".gz") ? gzipped("once") : std::string("once");
    CHECK(form(name, text).kind == FileKind::kText);
  }
  CHECK(form("a.PARQUET", "PAR1 and PAR1").kind == FileKind::kParquet);
  CHECK(form("a.pq", "PAR1 and PAR1").kind == FileKind::kParquet);
  CHECK(form("a", "PAR1 and PAR1").kind == FileKind::kParquet);
  CHECK(form("a.txt", "PAR1 is a text").kind == FileKind::kText);
  CHECK(form("a.BIN", "\x1f\x8b").kind == FileKind::kTokens);
  CHECK(form("a.jsonl", "").kind == FileKind::kJsonLines);
  CHECK(form("a.json", kLines + std::string(300'000, ' ')).kind == FileKind::kJsonLines);
  CHECK(form("a.json", "{\"text\": \"" + std::string(300'000, 'x') + "\"}\n").kind ==
        FileKind::kJsonLines);
}

TEST_CASE("what is of no known kind is named with a remedy") {
  using Catch::Contains;
  const std::tuple<std::string, std::string, std::string, bool> rows[] = {
      {"a.csv", "text,url\n", "\".csv\" is no kind", true},
      {"a.html", "<p>", "\".html\" is no kind", true},
      {"a.json", "{\n  \"text\": 1\n}\n", "jq -c .", true},
      {"a.json", "[{\"text\": \"x\"}]\n", "jq -c '.[]'", true},
      {"a.txt", kLines, "ends in .jsonl", true},
      {"a.md", kLines, "ends in .jsonl", true},
      {"a.zip", "PK\x03\x04", "zip", false},
      {"a.txt", "PK\x03\x04", "zip", false},
      {"a.jsonl.xz",
       "\xfd"
       "7zXZ",
       "xz", false},
      {"a.jsonl.bz2", "BZh91AY&SY", "bzip2", false},
      {"a.tar", std::string(257, 'a') + "ustar", "tar", false},
      {"a.tgz", gzipped(std::string(257, 'a') + "ustar"), "tar", false},
      {"a.txt.gz", gzipped(gzipped("x")), "compressed twice", false},
      {"a.png", "\x89PNG\r\n", "a picture", false},
      {"a.txt",
       "\xff\xfe"
       "a",
       "iconv -f UTF-16", false},
      {"a.jsonl",
       "\xff\xfe"
       "a",
       "iconv -f UTF-16", false},
      {"a.parquet", "version https://git-lfs.github.com/spec/v1\n", "git lfs pull", false},
      {"train-00000.tokens", "FSTOKENS\x01", "made already", false},
      {"a.bin.gz", gzipped("ab"), "compressed", false}};
  for (const auto& [name, content, part, may_be_text] : rows) {
    INFO(name);
    const auto found = form(name, content);
    CHECK(found.kind == FileKind::kUnknown);
    CHECK_THAT(found.why, Contains(part));
    CHECK(found.may_be_text == may_be_text);
  }
}

TEST_CASE("a file that is named as a text is read as one, and nothing else is") {
  TemporaryFolder folder;
  const auto read = [&](const std::string& name, const std::string& content) {
    write_file(folder / name, content);
    return read_text(folder / name);
  };
  CHECK(read("a.txt", "once") == "once");
  CHECK(read("a.txt",
             "\xef\xbb\xbf"
             "once") == "once");
  CHECK(read("a.txt.gz", gzipped("\xef\xbb\xbf"
                                 "once")) == "once");
  CHECK(read("prompt.en", "once") == "once");
  CHECK(read("empty.txt", "").empty());
  using Catch::Contains;
  CHECK_THROWS_WITH(read("a.jsonl", kLines),
                    Contains("JSON lines") && Contains("farstep tokenize"));
  CHECK_THROWS_WITH(read("a.parquet", "PAR1PAR1"), Contains("Parquet"));
  CHECK_THROWS_WITH(read("a", "\x89PNG"), Contains("a picture"));
  CHECK_THROWS_WITH(read("random", "abc\xf8\xff"), Contains("byte 3: not UTF-8"));
  CHECK_THROWS_AS(read_text(folder / "missing"), DataError);
}

}  // namespace farstep
