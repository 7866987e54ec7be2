#include "trainer/base/checksum.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace farstep {

struct StreamingChecksum::State {
  // Made by XXH3 itself, which aligns its state to a cache line.
  XXH3_state_t* hash = XXH3_createState();
  ~State() { XXH3_freeState(hash); }
};

// XXH3 is faster than memory. It finds faults, not forgeries: the sites trust each other.
uint64_t checksum(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

StreamingChecksum::StreamingChecksum() : state_(std::make_unique<State>()) {
  XXH3_64bits_reset(state_->hash);
}
StreamingChecksum::~StreamingChecksum() = default;
StreamingChecksum::StreamingChecksum(StreamingChecksum&&) noexcept = default;
StreamingChecksum& StreamingChecksum::operator=(StreamingChecksum&&) noexcept = default;

void StreamingChecksum::update(std::span<const std::byte> bytes) {
  XXH3_64bits_update(state_->hash, bytes.data(), bytes.size());
}

uint64_t StreamingChecksum::value() const {
  return XXH3_64bits_digest(state_->hash);
}

std::string checksum_text(uint64_t value) {
  return fmt::format("{:016x}", value);
}

}  // namespace farstep
