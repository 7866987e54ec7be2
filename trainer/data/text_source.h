// Documents out of text files: plain text (the whole file is one document) and JSONL (each line has
// a member "text"), both also under .gz and .zst. Which of them a file is, its name says.
//
// A TextSource belongs to one thread.
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
  // Opens the file. Throws DataError if it cannot be read or holds nothing.
  explicit TextSource(const std::filesystem::path& path);
  ~TextSource();
  TextSource(TextSource&&) noexcept;

  // The next document, or nothing after the last. Throws DataError with file and line (a line that
  // is no JSON object with a string "text") or file and byte (a truncated or corrupt stream).
  std::optional<std::string> next();
  // Passes over the next document without parsing it; false after the last. Throws DataError.
  bool skip();
  // How much of the file on the disk has been read, for progress.
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

// Whether each line is a document, rather than the whole file.
bool is_jsonl(const std::filesystem::path& path);

// Documents of a file: 1 for plain text; reads JSONL through to count. Throws DataError.
int64_t count_documents(const std::filesystem::path& path);

}  // namespace farstep
