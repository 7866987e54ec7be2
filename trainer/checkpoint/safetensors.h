// Reads safetensors files: 8 bytes of little-endian header length, a JSON header {name: {dtype,
// shape, data_offsets}}, then the tensors' bytes without gaps.
//
// Strict: refuses a header that does not describe the bytes of the file exactly.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "trainer/base/memory/named_buffers.h"

namespace farstep {

// One tensor of a file. `bytes` are in the mapped file, row-major, possibly not aligned.
struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
};

// A memory-mapped safetensors file. Immutable and thread-safe. Copies share the mapping, to which
// the entries' bytes point. The file must not shrink while it is mapped.
class SafetensorsFile {
 public:
  // Opens and checks the file. Throws DataError with file and offset if it cannot be read, is
  // malformed, or has a dtype other than F32, BF16, F16 and I64.
  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  // Returns all tensors, in order of their bytes.
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  // Returns the tensor of that name. Throws DataError if there is none.
  const SafetensorsEntry& at(const std::string& name) const;

  // Copies a floating-point tensor, converted to fp32. Throws DataError if it does not exist, is
  // I64, or does not have values.size() elements.
  void copy_as_f32(const std::string& name, std::span<float> values) const;

  // Copies every tensor into the buffer of its name. Throws DataError, before copying anything,
  // unless the file has exactly these names, dtypes and shapes.
  void copy_all(const NamedBuffers& into) const;

 private:
  std::filesystem::path path_;
  std::shared_ptr<const std::byte> mapping_;
  std::vector<SafetensorsEntry> entries_;
  std::unordered_map<std::string, std::size_t> places_;  // of the entries, by name
  std::map<std::string, std::string> metadata_;
};

// Throws DataError unless `present` and the names of `wanted` are the same set. The message begins
// with `source` and lists the names.
void require_same_names(const std::string& source, const std::vector<std::string>& present,
                        const NamedBuffers& wanted);

// Throws DataError unless the tensor has the buffer's shape. The message begins with `source`.
void require_same_shape(const std::string& source, const SafetensorsEntry& entry,
                        const NamedBuffer& wanted);

}  // namespace farstep
