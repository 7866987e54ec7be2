// Token files of other programs: nanoGPT's .bin, which is ids of 16 bits and nothing else, and
// llm.c's, which has a header of 256 integers before ids of 16 or 32 bits.
//
// One thread uses a TokenFile.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <vector>

namespace farstep {

class TokenFile {
 public:
  // Whether the name says that the file is to validate with: "val.bin", "fineweb_val_000000.bin".
  static bool validates(const std::filesystem::path& path);

  // Opens the file and reads its header. Throws DataError for one that cannot be read, or that does
  // not hold what its header announces.
  explicit TokenFile(const std::filesystem::path& path);

  int64_t num_tokens() const { return num_tokens_; }
  // Replaces `ids` by the next ids, `most` or what is left. Throws DataError, with file and byte,
  // for an id that is not below `vocabulary`.
  void read(std::size_t most, int64_t vocabulary, std::vector<int32_t>& ids);

 private:
  std::filesystem::path path_;
  std::ifstream in_;
  int64_t header_bytes_ = 0, token_bytes_ = 2, num_tokens_ = 0, done_ = 0;
};

}  // namespace farstep
