// The bytes of a file, decompressed. Its first bytes say how it is compressed, whatever its name
// is.
//
// One thread uses a ByteReader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace farstep {

// What is read at once: few system calls, and the buffer stays in a core's cache.
inline constexpr std::size_t kBufferBytes = std::size_t{1} << 18;

class ByteReader {
 public:
  virtual ~ByteReader() = default;
  // Fills `out`. Returns fewer bytes only at the end of the file. Throws DataError, with file and
  // byte, for a stream that is truncated or corrupt, or whose decoder takes memory out of
  // proportion.
  virtual std::size_t read(std::span<char> out) = 0;
  // Returns the bytes of the file that have been read.
  virtual int64_t file_offset() const = 0;
  virtual bool is_compressed() const = 0;
};

// Opens a file that is plain, or compressed by gzip or zstd. Throws DataError if it cannot be read,
// or is not what its name says.
std::unique_ptr<ByteReader> open_bytes(const std::filesystem::path& path);

// Returns the name of a file in lower case.
std::string lower_name(const std::filesystem::path& path);
// Returns the same without .gz or .zst at its end.
std::string name_without_compression(const std::filesystem::path& path);

// Returns the most bytes of memory that a document or a decoder of a compressed file may take: 64
// times the file's size, at least 64 MiB. A stream of some KiB could fill all memory otherwise.
int64_t most_memory_bytes(const std::filesystem::path& path);

// The text of a file, line by line or whole, without the byte-order mark at its beginning. A line
// of a compressed file is limited to most_memory_bytes().
class TextBuffer {
 public:
  // Opens the file. Throws DataError.
  explicit TextBuffer(const std::filesystem::path& path);

  // Returns the next line without its end, nullopt after the last. Throws DataError, also for one
  // beyond the limit.
  std::optional<std::string> line();
  // Returns all that is left, likewise.
  std::string rest();
  // Whether nothing is left. Throws DataError.
  bool at_end() { return used_ == buffer_.size() && !fill(); }
  // Returns the first bytes, at most kBufferBytes, before anything is taken.
  std::string_view first_bytes() const { return buffer_; }
  int64_t file_offset() const { return reader_->file_offset(); }

 private:
  bool fill();
  void take(std::size_t bytes, std::string& text);

  std::filesystem::path path_;
  std::unique_ptr<ByteReader> reader_;
  std::size_t most_bytes_;  // of a line
  std::string buffer_;
  std::size_t used_ = 0;  // of buffer_
};

}  // namespace farstep
