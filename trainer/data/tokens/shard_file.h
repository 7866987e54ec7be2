// Token shards: files of token ids, two or four bytes each, after a header with checksums.
//
// docs/token_shards.md describes the format. A shard gets its name only when it is complete and on
// the disk. One thread uses a ShardWriter; any number use a const ShardFile.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include "trainer/base/checksum.h"
#include "trainer/config/fields.h"

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

// What the temporary file of a shard holds on the disk.
struct ShardPart {
  int64_t tokens = 0;
  std::string checksum;  // of them, as checksum_text() has it

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("tokens", tokens, "ids in the file", required(at_least(0)));
    visit("checksum", checksum, "XXH3 of them", kRequired);
  }
};

class ShardWriter {
 public:
  // Creates a temporary file beside `path`. Throws DataError if it cannot be written.
  ShardWriter(const std::filesystem::path& path, int64_t vocabulary, int64_t eos);
  // Goes on after the part that another writer has saved, and drops what follows it. Throws
  // DataError if the file does not hold that part.
  ShardWriter(const std::filesystem::path& path, int64_t vocabulary, int64_t eos,
              const ShardPart& part);
  // Removes the temporary file if neither save() nor finish() was called.
  ~ShardWriter();
  ShardWriter(const ShardWriter&) = delete;
  ShardWriter& operator=(const ShardWriter&) = delete;

  // Appends tokens, each in [0, vocabulary). Throws DataError if the disk fails.
  void append(std::span<const int32_t> tokens);
  // Returns the number of tokens appended so far.
  int64_t num_tokens() const { return header_.num_tokens; }
  // Flushes the tokens to the disk, and returns what is there. The temporary file stays from now
  // on. Throws DataError.
  ShardPart save();
  // Writes the header, flushes, and renames the file to its final name. Throws DataError.
  void finish();

 private:
  void write(std::span<const std::byte> bytes);
  void read_part(const ShardPart& part);

  std::filesystem::path path_, partial_;
  ShardHeader header_;
  StreamingChecksum checksum_;
  std::ofstream out_;
  bool stays_ = false;  // the file, whatever becomes of this
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
