// Writes safetensors files (safetensors.h describes the format).
//
// The data starts at a multiple of 8 bytes and every tensor is aligned to its element, so that
// other readers can map the file.
#pragma once

#include <filesystem>
#include <map>
#include <stop_token>
#include <string>

#include "trainer/base/memory/named_buffers.h"
#include "trainer/checkpoint/checksummed_writer.h"

namespace farstep {

// Writes the buffers to `path`, replacing it, and flushes. `metadata` goes to the header's
// __metadata__. Throws DataError if the disk fails or `stop` is requested.
WrittenFile write_safetensors(const std::filesystem::path& path, const NamedBuffers& buffers,
                              const std::map<std::string, std::string>& metadata = {},
                              const std::stop_token& stop = {});

}  // namespace farstep
