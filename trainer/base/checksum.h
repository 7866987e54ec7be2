// XXH3 64-bit checksums of token shards, checkpoint files and theta_global.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace farstep {

// Returns the checksum of `bytes`.
uint64_t checksum(std::span<const std::byte> bytes);

// The checksum of bytes that arrive in pieces; equals checksum() of their concatenation.
class StreamingChecksum {
 public:
  StreamingChecksum();
  ~StreamingChecksum();
  StreamingChecksum(StreamingChecksum&&) noexcept;
  StreamingChecksum& operator=(StreamingChecksum&&) noexcept;
  void update(std::span<const std::byte> bytes);
  uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Returns 16 lower-case hexadecimal digits, the form used in JSON.
std::string checksum_text(uint64_t value);

}  // namespace farstep
