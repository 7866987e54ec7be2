// Token shards: files of token ids, two or four bytes each, behind a header with checksums.
//
// docs/token_shards.md gives the format byte by byte. A shard appears under its name only when it
// is whole and on the disk. ShardWriter belongs to one thread; a const ShardFile to any number.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>

#include "trainer/base/checksum.h"

namespace farstep {

struct ShardHeader {
  int64_t token_bytes = 2;  // width of one token: 2 or 4
  int64_t vocabulary = 0;   // every token id is below it
  int64_t eos = 0;          // id of the token that ends a document
  int64_t num_tokens = 0;
  uint64_t payload_checksum = 0;
};

// The narrowest width that holds every id of the vocabulary: 2 up to 65536 entries, else 4.
int64_t token_bytes_for(int64_t vocabulary);

class ShardWriter {
 public:
  // Starts `path` under a temporary name beside it. Throws DataError if that cannot be written.
  ShardWriter(const std::filesystem::path& path, int64_t vocabulary, int64_t eos);
  // Removes what was written if finish() was not reached.
  ~ShardWriter();
  ShardWriter(const ShardWriter&) = delete;
  ShardWriter& operator=(const ShardWriter&) = delete;

  // Appends tokens, each in [0, vocabulary). Throws DataError if the disk does not take them.
  void append(std::span<const int32_t> tokens);
  // Tokens appended so far.
  int64_t num_tokens() const { return header_.num_tokens; }
  // Completes the header, flushes to the disk and gives the file its name. Throws DataError.
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
  // Maps the shard into memory, having checked its header and its size. Throws DataError with file
  // and byte offset.
  explicit ShardFile(const std::filesystem::path& path);
  ~ShardFile();
  ShardFile(ShardFile&& other) noexcept;
  ShardFile& operator=(ShardFile&&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const ShardHeader& header() const { return header_; }
  int64_t num_tokens() const { return header_.num_tokens; }

  // Reads the whole payload once: the checksum must hold and every id be below the vocabulary.
  // Throws DataError with file and byte offset.
  void verify() const;
  // Copies out.size() tokens from `offset` (in tokens) on, all of which must exist.
  void read(int64_t offset, std::span<int64_t> out) const;

 private:
  std::filesystem::path path_;
  ShardHeader header_;
  std::span<const std::byte> mapped_;  // the whole file
};

}  // namespace farstep
