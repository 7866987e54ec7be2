// Writes a large file from its beginning to its end, past the page cache where the file system can.
//
// A checkpoint of gigabytes is not read again soon. In the page cache it would push out the
// training data, and copying it there may cost more than the disk: on a virtual machine, saving
// took three times as long (docs/results/saving.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <stop_token>

#include "trainer/base/checksum.h"
#include "trainer/base/memory/aligned_memory.h"

namespace farstep {

struct WrittenFile {
  int64_t bytes = 0;
  uint64_t checksum = 0;  // of the whole file
};

class ChecksummedWriter {
 public:
  // Creates the file, or empties it. Throws DataError if it cannot.
  ChecksummedWriter(const std::filesystem::path& path, const std::stop_token& stop);
  ~ChecksummedWriter();
  ChecksummedWriter(const ChecksummedWriter&) = delete;
  ChecksummedWriter& operator=(const ChecksummedWriter&) = delete;

  // Appends the bytes. Throws DataError if the disk fails or a stop is requested.
  void write(std::span<const std::byte> bytes);
  // Writes what is left, and flushes. Throws as write().
  WrittenFile finish();

 private:
  void write_block();
  // Goes on through the page cache. Returns false if that was so already.
  bool end_direct_writes();
  [[noreturn]] void fail() const;

  const std::filesystem::path path_;
  const std::stop_token stop_;
  const AlignedMemory block_;
  std::size_t block_bytes_ = 0;  // that are not written yet
  int descriptor_;
  int64_t written_ = 0;
  StreamingChecksum checksum_;
};

}  // namespace farstep
