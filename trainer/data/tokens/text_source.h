// Reads documents from text files: plain text (one document) or JSONL (one document a line, in its
// member "text"), plain or compressed. The file's name decides: .jsonl, .gz, .zst.
//
// One thread uses a TextSource.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace farstep {

namespace detail {
class ByteReader;
}

class TextSource {
 public:
  // Opens the file. Throws DataError if it cannot be read or is empty.
  explicit TextSource(const std::filesystem::path& path);
  ~TextSource();
  TextSource(TextSource&&) noexcept;

  // Returns the next document, or nullopt after the last. Throws DataError with file and line (not
  // a JSON object with a string "text"), or file and byte (a truncated or corrupt stream).
  std::optional<std::string> next();
  // Skips the next document without parsing it; returns false after the last. Throws DataError.
  bool skip();
  // Returns the bytes of the file that have been read, for progress.
  int64_t file_bytes_read() const;

 private:
  bool fill();
  std::string rest_of_file();
  std::optional<std::string> next_line();

  std::filesystem::path path_;
  std::unique_ptr<detail::ByteReader> reader_;
  std::string buffer_;
  std::size_t used_ = 0;  // of buffer_
  int64_t line_ = 0;      // number of the line last read
};

// Whether each line is a document; otherwise the whole file is one.
bool is_jsonl(const std::filesystem::path& path);

// Returns the number of documents: 1 for plain text; counts the lines of JSONL. Throws DataError.
int64_t count_documents(const std::filesystem::path& path);

}  // namespace farstep
