#include "trainer/data/parquet/parquet_text.h"

#include <arrow/io/file.h>
#include <arrow/memory_pool.h>
#include <parquet/api/writer.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/source_folder.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"

namespace farstep {

namespace {

using Texts = std::vector<std::optional<std::string>>;

// What scripts/reference_parquet.py has written by Python's library.
std::filesystem::path golden(const std::string& name) {
  return source_folder() / "tests/golden/parquet" / name;
}

Texts expected_texts() {
  Texts texts;
  for (const auto& text : nlohmann::json::parse(read_file(golden("texts.json")))) {
    texts.push_back(text.is_null() ? std::nullopt : std::optional(text.get<std::string>()));
  }
  return texts;
}

Texts rest_of(ParquetText& source) {
  Texts texts;
  std::optional<std::string> text;
  while (source.next(text)) texts.push_back(text);
  return texts;
}

Texts read_all(const std::filesystem::path& path, const std::string& column = "text") {
  ParquetText source(path, column);
  return rest_of(source);
}

constexpr const char* kKinds[] = {"snappy", "gzip",     "zstd",  "brotli", "lz4",
                                  "pages",  "version2", "delta", "binary", "dictionary"};

// Writes `groups` row groups of one text of `bytes` bytes in each of ten rows.
void write_groups(const std::filesystem::path& path, int groups, std::size_t bytes) {
  const auto pool = arrow::MemoryPool::CreateDefault();
  const auto text = parquet::schema::PrimitiveNode::Make("text", parquet::Repetition::REQUIRED,
                                                         parquet::LogicalType::String(),
                                                         parquet::Type::BYTE_ARRAY);
  const auto root = std::static_pointer_cast<parquet::schema::GroupNode>(
      parquet::schema::GroupNode::Make("schema", parquet::Repetition::REQUIRED, {text}));
  const auto properties = parquet::WriterProperties::Builder()
                              .memory_pool(pool.get())
                              ->disable_dictionary()
                              ->data_pagesize(1 << 18)
                              ->build();
  auto file = arrow::io::FileOutputStream::Open(path.string()).ValueOrDie();
  auto writer = parquet::ParquetFileWriter::Open(file, root, properties);
  const std::string value(bytes, 'x');
  for (int group = 0; group < groups; ++group) {
    auto* const column =
        static_cast<parquet::ByteArrayWriter*>(writer->AppendRowGroup()->NextColumn());
    for (int row = 0; row < 10; ++row) {
      const parquet::ByteArray bytes_of(static_cast<uint32_t>(value.size()),
                                        reinterpret_cast<const uint8_t*>(value.data()));
      column->WriteBatch(1, nullptr, nullptr, &bytes_of);
    }
    column->Close();
  }
  writer->Close();
}

}  // namespace

TEST_CASE("the texts are those that Python's library wrote, in every kind of file") {
  const auto expected = expected_texts();
  REQUIRE(expected.size() == 120);
  for (const std::string kind : kKinds) {
    INFO(kind);
    CHECK((read_all(golden(kind + ".parquet")) == expected));
    CHECK(ParquetText::count_rows(golden(kind + ".parquet")) == 120);
  }
  auto without_nulls = expected;
  for (auto& text : without_nulls) text = text.value_or("");
  CHECK((read_all(golden("required.parquet")) == without_nulls));
  CHECK(read_all(golden("empty.parquet")).empty());
  CHECK((read_all(golden("bytes.parquet")) == Texts{"good", "bad \xff", "good"}));
}

TEST_CASE("rows are skipped wherever pages and row groups end") {
  const auto expected = expected_texts();
  for (const std::string kind : kKinds) {
    for (const int64_t read_before : {0, 3}) {
      for (const int64_t skipped : {0, 1, 30, 47, 49, 50, 69, 100, 117, 120, 1000}) {
        INFO(kind << " " << read_before << " " << skipped);
        ParquetText source(golden(kind + ".parquet"), "text");
        std::optional<std::string> text;
        for (int64_t i = 0; i < read_before; ++i) REQUIRE(source.next(text));
        const int64_t there = std::min<int64_t>(skipped, 120 - read_before);
        CHECK(source.skip(skipped) == there);
        CHECK(source.next_row() == read_before + there);
        const Texts rest(expected.begin() + read_before + there, expected.end());
        CHECK((rest_of(source) == rest));
        CHECK(source.skip(1) == 0);
      }
    }
  }
}

TEST_CASE("a column that is no text is refused by its name, with those that are") {
  const auto path = golden("kinds.parquet");
  CHECK((read_all(path, "title") == Texts{"a"}));
  const auto refusal = [&](const std::string& column) {
    try {
      ParquetText source(path, column);
    } catch (const DataError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  using Catch::Contains;
  for (const std::string column :
       {"text", "number", "list", "outer", "outer.inner", "map", "day"}) {
    CHECK_THAT(refusal(column), Contains("kinds.parquet") && Contains('"' + column + '"') &&
                                    Contains("it has these of text: title, body"));
  }
  CHECK_THAT(refusal("text"), Contains("is not there"));
  CHECK_THAT(refusal("number"), Contains("is of type INT64"));
  CHECK_THAT(refusal("list"), Contains("is nested"));
  CHECK_THAT(refusal("outer.inner"), Contains("is inside of another one"));
}

TEST_CASE("a program without the module says how to get it") {
  CHECK_THROWS_WITH(ParquetText(golden("zstd.parquet"), "text", "libfarstep_none.so"),
                    Catch::Contains("zstd.parquet: Parquet needs") &&
                        Catch::Contains("libfarstep_none.so") &&
                        Catch::Contains("scripts/setup.sh --parquet"));
}

TEST_CASE("a truncated or damaged file is refused by its name, or read") {
  TemporaryFolder folder;
  const auto path = folder / "a.parquet";
  const auto read_or_refuse = [&](const std::string& content) {
    write_file(path, content);
    try {
      return read_all(path).size() == 120 ? 1 : 0;
    } catch (const DataError& error) {
      CHECK_THAT(error.what(), Catch::StartsWith(path.string()));
      return -1;
    }
  };
  for (const std::string kind : {"pages", "snappy"}) {
    const auto whole = read_file(golden(kind + ".parquet"));
    REQUIRE(read_or_refuse(whole) == 1);
    for (std::size_t size = 0; size < whole.size(); size += 97) {
      INFO(kind << " cut to " << size);
      CHECK(read_or_refuse(whole.substr(0, size)) == -1);
    }
    // A flipped bit may be in another column, or in a text of a file without checksums.
    for (std::size_t at = 0; at < whole.size(); at += 31) {
      INFO(kind << " changed at " << at);
      auto changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ 0x41);
      CHECK(read_or_refuse(changed) != 0);
    }
  }
  CHECK(read_or_refuse("") == -1);
  CHECK(read_or_refuse("{\"text\": \"no Parquet\"}\n") == -1);
  std::filesystem::remove(path);
  CHECK_THROWS_AS(ParquetText(path, "text"), DataError);
}

TEST_CASE("a page that announces gigabytes is refused without them") {
  TemporaryFolder folder;
  auto content = read_file(golden("pages.parquet"));
  // Two bytes of a header make 1,172,922,956 of the bytes of its page.
  content[3678] = '\xeb';
  content[3679] = '\xea';
  write_file(folder / "a.parquet", content);
  const int64_t before = arrow::default_memory_pool()->max_memory();
  CHECK_THROWS_WITH(read_all(folder / "a.parquet"),
                    Catch::StartsWith((folder / "a.parquet").string() + ": cannot be read") &&
                        Catch::Contains("more memory than the 256 MiB") &&
                        Catch::Contains("write it with smaller pages"));
  CHECK(arrow::default_memory_pool()->max_memory() <= std::max(before, int64_t{300'000'000}));
}

TEST_CASE("memory does not grow with the file, nor with its row groups") {
  TemporaryFolder folder;
  for (const auto& [groups, bytes] :
       {std::pair{100, std::size_t{50'000}}, std::pair{2, std::size_t{2'500'000}}}) {
    write_groups(folder / "a.parquet", groups, bytes);
    REQUIRE(std::filesystem::file_size(folder / "a.parquet") > 40'000'000);
    const int64_t before = arrow::default_memory_pool()->bytes_allocated();
    int64_t most = 0, rows = 0;
    ParquetText source(folder / "a.parquet", "text");
    std::optional<std::string> text;
    while (source.next(text)) {
      ++rows;
      most = std::max(most, arrow::default_memory_pool()->bytes_allocated() - before);
    }
    CHECK(rows == 10 * groups);
    // A page holds a text at least.
    CHECK(most < 4'000'000 + 4 * static_cast<int64_t>(bytes));
    CHECK(most > 0);
  }
}

}  // namespace farstep
