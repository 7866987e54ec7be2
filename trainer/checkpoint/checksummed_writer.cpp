// Written past the page cache: gigabytes that nobody reads again would push out the data that
// training reads. The checksum is taken from the block in memory, so the file is never read back.
#include "trainer/checkpoint/checksummed_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "trainer/base/error.h"

namespace farstep {

namespace {

// Written in milliseconds, so a stop is heeded soon.
constexpr std::size_t kBlockBytes = std::size_t{1} << 22;
// A direct write needs memory, offset and length in whole sectors of the disk.
constexpr std::size_t kAlignment = 4096;
constexpr int kCreate = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;

// Some file systems, such as tmpfs, have no direct writes.
int open_for_writing(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), kCreate | O_DIRECT, 0666);
  if (descriptor >= 0 || errno != EINVAL) return descriptor;
  return ::open(path.c_str(), kCreate, 0666);
}

}  // namespace

ChecksummedWriter::ChecksummedWriter(const std::filesystem::path& path, const std::stop_token& stop)
    : path_(path),
      stop_(stop),
      block_(aligned_memory(kBlockBytes, kAlignment)),
      descriptor_(open_for_writing(path)) {
  if (descriptor_ < 0) fail();
}

ChecksummedWriter::~ChecksummedWriter() {
  ::close(descriptor_);
}

void ChecksummedWriter::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(bytes.size(), kBlockBytes - block_bytes_));
    std::memcpy(block_.get() + block_bytes_, piece.data(), piece.size());
    block_bytes_ += piece.size();
    bytes = bytes.subspan(piece.size());
    if (block_bytes_ == kBlockBytes) write_block();
  }
}

void ChecksummedWriter::write_block() {
  if (stop_.stop_requested()) {
    throw DataError(fmt::format("{}: given up at offset {}", path_.string(), written_));
  }
  auto rest = std::span<const std::byte>(block_.get(), block_bytes_);
  checksum_.update(rest);
  while (!rest.empty()) {
    const ssize_t count = ::write(descriptor_, rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    // The disk's sectors are larger, or a write has ended within one.
    if (count < 0 && errno == EINVAL && end_direct_writes()) continue;
    if (count < 0) fail();
    written_ += count;
    rest = rest.subspan(static_cast<std::size_t>(count));
  }
  block_bytes_ = 0;
}

bool ChecksummedWriter::end_direct_writes() {
  const int flags = ::fcntl(descriptor_, F_GETFL);
  if (flags < 0) fail();
  if ((flags & O_DIRECT) == 0) return false;
  if (::fcntl(descriptor_, F_SETFL, flags & ~O_DIRECT) < 0) fail();
  return true;
}

// The end is shorter than a sector. Without the flush a power failure could leave a whole name with
// half a file.
WrittenFile ChecksummedWriter::finish() {
  end_direct_writes();
  if (block_bytes_ > 0) write_block();
  if (::fsync(descriptor_) != 0) fail();
  return {written_, checksum_.value()};
}

void ChecksummedWriter::fail() const {
  throw DataError(fmt::format("{}: offset {}: cannot be written: {}", path_.string(), written_,
                              std::strerror(errno)));
}

}  // namespace farstep
