// Reading of safetensors files: 8 bytes of little-endian header length, a JSON header
// {name: {dtype, shape, data_offsets}}, then the tensors' bytes without holes.
//
// Reading is strict: a header that does not describe exactly the bytes of the file is refused.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/base/named_buffers.h"

namespace farstep {

// One tensor of a file; `bytes` lie in the mapped file, row-major, perhaps not aligned.
struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
};

// A memory-mapped safetensors file. Immutable; may be read concurrently; copies share the mapping,
// in which the entries' bytes lie. The file must not shrink meanwhile.
class SafetensorsFile {
 public:
  // Opens and checks the file. Throws DataError with file and offset if it cannot be read, is
  // malformed, or has a dtype other than F32, BF16, F16 and I64.
  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  // All tensors, in the order of their bytes.
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  // The tensor of that name. Throws DataError if there is none.
  const SafetensorsEntry& at(const std::string& name) const;

  // Copies a floating-point tensor, converted to fp32. Throws DataError if there is no such tensor,
  // it is I64, or it does not have values.size() elements.
  void copy_as_f32(const std::string& name, std::span<float> values) const;

  // Copies every tensor into the buffer of its name. Throws DataError unless the file has exactly
  // these names, each with its buffer's dtype and shape; nothing is copied then.
  void copy_all(const NamedBuffers& into) const;

 private:
  std::filesystem::path path_;
  std::shared_ptr<const std::byte> mapping_;
  std::vector<SafetensorsEntry> entries_;
  std::map<std::string, std::string> metadata_;
};

// Throws DataError that begins with `source` and lists the names in question unless `present` and
// the names of `wanted` are the same set.
void require_same_names(const std::string& source, const std::vector<std::string>& present,
                        const NamedBuffers& wanted);

// Throws DataError that begins with `source` unless the tensor has the buffer's shape.
void require_same_shape(const std::string& source, const SafetensorsEntry& entry,
                        const NamedBuffer& wanted);

}  // namespace farstep
