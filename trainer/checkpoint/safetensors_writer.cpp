#include "trainer/checkpoint/safetensors_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <span>
#include <vector>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "trainer/base/checksum.h"
#include "trainer/base/error.h"

namespace farstep {

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");

namespace {

// Writes a file from beginning to end and computes its checksum.
class ChecksummedWriter {
 public:
  ChecksummedWriter(const std::filesystem::path& path, const std::stop_token& stop)
      : path_(path),
        stop_(stop),
        descriptor_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) fail();
  }
  ~ChecksummedWriter() { ::close(descriptor_); }
  ChecksummedWriter(const ChecksummedWriter&) = delete;
  ChecksummedWriter& operator=(const ChecksummedWriter&) = delete;

  // In pieces of 4 MiB, between which it checks for a stop.
  void write(std::span<const std::byte> bytes) {
    // Written in milliseconds, so a stop is heeded soon.
    constexpr std::size_t kPieceBytes = std::size_t{1} << 22;
    while (!bytes.empty()) {
      if (stop_.stop_requested()) {
        throw DataError(fmt::format("{}: given up at offset {}", path_.string(), written_));
      }
      const auto piece = bytes.first(std::min(bytes.size(), kPieceBytes));
      const ssize_t count = ::write(descriptor_, piece.data(), piece.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail();
      const auto written = static_cast<std::size_t>(count);
      checksum_.update(piece.first(written));
      written_ += count;
      bytes = bytes.subspan(written);
    }
  }

  // Without the flush a power failure could leave a whole name with half a file.
  WrittenFile finish() {
    if (::fsync(descriptor_) != 0) fail();
    return {written_, checksum_.value()};
  }

 private:
  [[noreturn]] void fail() const {
    throw DataError(fmt::format("{}: offset {}: cannot be written: {}", path_.string(), written_,
                                std::strerror(errno)));
  }

  const std::filesystem::path path_;
  const std::stop_token stop_;
  int descriptor_;
  int64_t written_ = 0;
  StreamingChecksum checksum_;
};

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
  for (const auto* buffer : ordered) file.write(buffer->bytes);
  return file.finish();
}

}  // namespace farstep
