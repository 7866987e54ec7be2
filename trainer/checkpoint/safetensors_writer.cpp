#include "trainer/checkpoint/safetensors_writer.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "trainer/base/error.h"

namespace farstep {

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");

namespace {

// Returns the buffers in the order of the file: wide elements first, so that every tensor is
// aligned.
std::vector<const NamedBuffer*> file_order(const NamedBuffers& buffers) {
  std::vector<const NamedBuffer*> ordered;
  for (const auto& buffer : buffers) ordered.push_back(&buffer);
  std::stable_sort(ordered.begin(), ordered.end(), [](const auto* a, const auto* b) {
    return size_of(a->dtype) > size_of(b->dtype);
  });
  return ordered;
}

// Spaces pad the header to 8 bytes, as the format allows, so that the data is aligned.
std::string header_text(const std::vector<const NamedBuffer*>& buffers,
                        const std::map<std::string, std::string>& metadata) {
  auto header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::size_t offset = 0;
  for (const auto* buffer : buffers) {
    const auto elements = static_cast<std::size_t>(num_elements(buffer->shape));
    FARSTEP_CHECK(buffer->bytes.size() == elements * size_of(buffer->dtype),
                  "buffer '{}' of shape {} has {} bytes", buffer->name, buffer->shape,
                  buffer->bytes.size());
    FARSTEP_CHECK(!header.contains(buffer->name), "two buffers are called '{}'", buffer->name);
    header[buffer->name] = {{"dtype", name_of(buffer->dtype)},
                            {"shape", buffer->shape},
                            {"data_offsets", {offset, offset + buffer->bytes.size()}}};
    offset += buffer->bytes.size();
  }
  auto text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace

WrittenFile write_safetensors(const std::filesystem::path& path, const NamedBuffers& buffers,
                              const std::map<std::string, std::string>& metadata,
                              const std::stop_token& stop) {
  const auto ordered = file_order(buffers);
  const auto header = header_text(ordered, metadata);
  const uint64_t header_bytes = header.size();
  ChecksummedWriter file(path, stop);
  file.write(std::as_bytes(std::span(&header_bytes, 1)));
  file.write(std::as_bytes(std::span(header)));
  // Straight from the memory of the list: no file is ever whole in memory.
  for (const auto* buffer : ordered) file.write(buffer->bytes);
  return file.finish();
}

}  // namespace farstep
