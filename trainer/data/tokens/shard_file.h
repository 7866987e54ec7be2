// Token shards: files of token ids, two or four bytes each, after a header with checksums.
//
// docs/token_shards.md describes the format. A shard gets its name only when it is complete and on
// the disk. One thread uses a ShardWriter; any number use a const ShardFile.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>

#include "trainer/base/checksum.h"

namespace farstep {

struct ShardHeader {
  int64_t token_bytes = 2;  // of one token: 2 or 4
  int64_t vocabulary = 0;   // above every token id
  int64_t eos = 0;          // id of the token that ends a document
  int64_t num_tokens = 0;
  uint64_t payload_checksum = 0;
};

// Returns the bytes of one token: 2 for a vocabulary of up to 65536, else 4.
int64_t token_bytes_for(int64_t vocabulary);

class ShardWriter {
 public:
  // Creates a temporary file beside `path`. Throws DataError if it cannot be written.
  ShardWriter(const std::filesystem::path& path, int64_t vocabulary, int64_t eos);
  // Removes the temporary file if finish() was not called.
  ~ShardWriter();
  ShardWriter(const ShardWriter&) = delete;
  ShardWriter& operator=(const ShardWriter&) = delete;

  // Appends tokens, each in [0, vocabulary). Throws DataError if the disk fails.
  void append(std::span<const int32_t> tokens);
  // Returns the number of tokens appended so far.
  int64_t num_tokens() const { return header_.num_tokens; }
  // Writes the header, flushes, and renames the file to its final name. Throws DataError.
  void finish();

 private:
  void write(std::span<const std::byte> bytes);

  std::filesystem::path path_, partial_;
  ShardHeader header_;
  StreamingChecksum checksum_;
  std::ofstream out_;
  bool finished_ = false;
};

class ShardFile {
 public:
  // Maps the shard into memory after checking its header and size. Throws DataError with file and
  // byte offset.
  explicit ShardFile(const std::filesystem::path& path);
  ~ShardFile();
  ShardFile(ShardFile&& other) noexcept;
  ShardFile& operator=(ShardFile&&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const ShardHeader& header() const { return header_; }
  int64_t num_tokens() const { return header_.num_tokens; }

  // Reads all tokens once and checks the checksum and the range of the ids. Throws DataError with
  // file and byte offset.
  void verify() const;
  // Copies out.size() tokens from token `offset` on; all of them must exist.
  void read(int64_t offset, std::span<int64_t> out) const;

 private:
  std::filesystem::path path_;
  ShardHeader header_;
  std::span<const std::byte> mapped_;  // the whole file
};

}  // namespace farstep
