// A checkpoint needs values that training changes. Copying them in the training thread would stop
// it for the whole copy. So another thread copies while the owner computes gradients, and the owner
// waits only before its next write. The mutex guards one flag: a copy is requested and not
// complete.
#include "trainer/base/memory/snapshot.h"

#include <sys/mman.h>

#include <chrono>
#include <cstring>
#include <utility>

#include "trainer/base/error.h"

namespace farstep {

namespace {

// Far longer than any copy takes: only a thread that has failed exceeds it.
constexpr std::chrono::minutes kMostWait{10};
// A buffer of the copy may hold values of any type.
constexpr std::size_t kAlignment = alignof(std::max_align_t);

constexpr std::size_t kHugePage = std::size_t{1} << 21;  // on x86; elsewhere it only aligns

std::size_t padded(std::size_t bytes, std::size_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// Not initialised, so that the copying thread touches the pages first. By small pages that took
// longer than the copy itself.
AlignedMemory huge_pages(std::size_t bytes) {
  // aligned_alloc() takes whole multiples only.
  bytes = padded(bytes, kHugePage);
  auto memory = aligned_memory(bytes, kHugePage);
  ::madvise(memory.get(), bytes, MADV_HUGEPAGE);  // a hint
  return memory;
}

}  // namespace

NamedBuffers Snapshot::start(NamedBuffers live) {
  const std::lock_guard lock(mutex_);
  FARSTEP_CHECK(!is_pending_, "the copy before is not complete");
  std::size_t bytes = 0;
  for (const auto& buffer : live) bytes += padded(buffer.bytes.size(), kAlignment);
  if (bytes > memory_bytes_) {
    memory_.reset();  // before the new allocation, as both may not fit
    memory_ = huge_pages(bytes);
    memory_bytes_ = bytes;
  }
  live_ = std::move(live);
  copies_ = live_;
  std::size_t offset = 0;
  for (auto& buffer : copies_) {
    buffer.bytes = {memory_.get() + offset, buffer.bytes.size()};
    offset += padded(buffer.bytes.size(), kAlignment);
  }
  is_pending_ = true;
  return copies_;
}

void Snapshot::copy() {
  {
    const std::lock_guard lock(mutex_);
    FARSTEP_CHECK(is_pending_, "no copy was requested");
  }
  // Without the lock: hold() keeps the owner from changing the buffers meanwhile.
  for (std::size_t i = 0; i < live_.size(); ++i) {
    if (live_[i].bytes.empty()) continue;
    std::memcpy(copies_[i].bytes.data(), live_[i].bytes.data(), live_[i].bytes.size());
  }
  {
    const std::lock_guard lock(mutex_);
    is_pending_ = false;
  }
  made_.notify_all();
}

double Snapshot::hold() {
  std::unique_lock lock(mutex_);
  // The usual case: no checkpoint was requested since the last step.
  if (!is_pending_) return 0;
  const auto began = std::chrono::steady_clock::now();
  const bool is_made = made_.wait_for(lock, kMostWait, [this] { return !is_pending_; });
  FARSTEP_CHECK(is_made, "no thread has made the requested copy");
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

}  // namespace farstep
