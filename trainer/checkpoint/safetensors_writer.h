// Writing of safetensors files; their format stands in safetensors.h.
//
// The data starts at a multiple of 8 bytes and every tensor is aligned to its element, so that
// other readers may map the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "trainer/base/named_buffers.h"

namespace farstep {

struct WrittenFile {
  int64_t bytes = 0;
  uint64_t checksum = 0;  // of the whole file
};

// Writes the buffers to `path`, replacing it, and flushes it to the disk; `metadata` goes to the
// header's __metadata__. Throws DataError if the disk does not take it.
WrittenFile write_safetensors(const std::filesystem::path& path, const NamedBuffers& buffers,
                              const std::map<std::string, std::string>& metadata = {});

}  // namespace farstep
