// Reads documents from text files: plain text (one document), JSONL (one document a line, in one of
// its members), both plain or compressed, or Parquet (one document a row, in one of its columns).
// The file's name decides: .jsonl, .parquet, .gz, .zst.
//
// One thread uses a TextSource.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "trainer/data/parquet/parquet_text.h"

namespace farstep {

namespace detail {
class ByteReader;
}

struct Document {
  std::string text;
  std::string fault;  // why this is no text, with its place: "line 3: not JSON"; empty for a text
};

class TextSource {
 public:
  // Opens the file; `field` is the member of a JSON line or the column of a Parquet file that has
  // the text. Throws DataError if the file cannot be read.
  explicit TextSource(const std::filesystem::path& path, std::string field = "text");
  ~TextSource();
  TextSource(TextSource&&) noexcept;

  // Returns the next document, or nullopt after the last; an empty file has none. A line that is no
  // JSON object with such a text has a fault, and so has a row without one, or a plain text that is
  // not UTF-8 or has bytes of 0. Throws DataError with file and byte for a truncated or corrupt
  // stream.
  std::optional<Document> next();
  // Skips the next documents, at most so many, without parsing them. Returns how many there were.
  // Throws DataError.
  int64_t skip(int64_t most);
  // Returns the bytes of the file that have been read, for progress.
  int64_t file_bytes_read() const;

 private:
  bool fill();
  std::string rest_of_file();
  std::optional<std::string> next_line();
  std::optional<Document> next_row();

  std::filesystem::path path_;
  std::string field_;
  // One of the two.
  std::unique_ptr<detail::ByteReader> reader_;
  std::optional<ParquetText> table_;
  std::string buffer_;
  std::size_t used_ = 0;  // of buffer_
  int64_t line_ = 0;      // number of the line last read
};

// Whether each line is a document.
bool is_jsonl(const std::filesystem::path& path);

// Whether the whole file is one document: it has neither lines nor rows of them.
bool is_one_document(const std::filesystem::path& path);

// Returns the number of documents, those with a fault included: 0 or 1 for plain text, and the
// lines of JSONL that are not blank, and the rows of Parquet. Throws DataError; Stopped if `stop`
// is requested meanwhile.
int64_t count_documents(const std::filesystem::path& path, const std::stop_token& stop = {});

}  // namespace farstep
