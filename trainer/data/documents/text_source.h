// Reads documents from files: text (one document), JSON lines (one document a line, in one of its
// members), or Parquet (one document a row, in one of its columns).
//
// One thread uses a TextSource.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "trainer/data/documents/byte_reader.h"
#include "trainer/data/documents/file_kind.h"
#include "trainer/data/parquet/parquet_text.h"

namespace farstep {

// Why a document is no text.
enum class TextFault {
  kNone,
  kNotJson,
  kCutShort,
  kNoObject,
  kNoMember,
  kNoString,
  kNotUtf8,
  kBinary,
};

// Returns the names of the faults in their order, the first of which is "none".
std::span<const std::string_view> fault_names();

struct Document {
  std::string text;
  TextFault fault = TextFault::kNone;
  std::string what;  // is wrong, with its place: "line 3: cut short, or not one line"
};

class TextSource {
 public:
  // Opens the file as one of `kind`: text, JSON lines or Parquet. `field` is the member of a JSON
  // line or the column of a Parquet file that has the text. Throws DataError if it cannot be read.
  TextSource(const std::filesystem::path& path, FileKind kind, std::string field = "text");

  // Returns the next document, or nullopt after the last; an empty file has none. A line or row
  // without such a text has a fault. So has a plain text that is not UTF-8, or has bytes of 0.
  // Throws DataError with file and byte for a truncated or corrupt stream, and for a document that
  // takes memory out of proportion to the file.
  std::optional<Document> next();
  // Skips the next documents, at most so many, without parsing them. Returns how many there were.
  // Throws DataError.
  int64_t skip(int64_t most);
  // Returns the bytes of the file that have been read, for progress.
  int64_t file_bytes_read() const;

 private:
  std::optional<std::string> next_line();
  std::optional<Document> next_row();

  std::filesystem::path path_;
  FileKind kind_;
  std::string field_;
  // One of the two.
  std::optional<TextBuffer> text_;
  std::optional<ParquetText> table_;
  int64_t line_ = 0;  // number of the line last read
};

// Returns the number of documents, those with a fault included: 0 or 1 for plain text, and the
// lines of JSON that are not blank, and the rows of Parquet. Throws DataError; Stopped if `stop` is
// requested meanwhile.
int64_t count_documents(const std::filesystem::path& path, FileKind kind,
                        const std::stop_token& stop = {});

}  // namespace farstep
