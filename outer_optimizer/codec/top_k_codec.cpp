// Sends the largest values of each block as they are, with their offsets. The residual keeps the
// rest. By blocks, so that the selection stays in the cache and chunks can be encoded apart.
#include "outer_optimizer/codec/top_k_codec.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include "trainer/base/error.h"

namespace farstep::outer_optimizer {

namespace {

constexpr std::size_t kValueBytes = sizeof(float);
// 16 bits, because a block has at most kLargestBlock values.
constexpr std::size_t kOffsetBytes = sizeof(uint16_t);

// Returns bits that order as |x| does, with NaN above infinity.
uint32_t magnitude(float x) {
  return std::bit_cast<uint32_t>(x) & 0x7fffffff;
}

// Writes the `kept` values of largest magnitude and their offsets; `scratch` is working memory.
// Bits are compared instead of floats, because NaN has no order and nth_element needs one.
void encode_block(std::span<const float> values, std::size_t kept, std::byte* bytes,
                  std::vector<uint32_t>& scratch) {
  scratch.resize(values.size());
  std::transform(values.begin(), values.end(), scratch.begin(), magnitude);
  const auto last_kept = scratch.begin() + static_cast<std::ptrdiff_t>(kept) - 1;
  std::nth_element(scratch.begin(), last_kept, scratch.end(), std::greater<>());
  // nth_element finds the threshold in linear time, without sorting the block.
  const uint32_t least = *last_kept;
  // Of equal magnitudes the first are kept. So the bytes do not depend on the order that
  // nth_element leaves.
  auto ties = std::count(scratch.begin(), last_kept + 1, least);  // how many equal to it are kept
  std::byte* offsets = bytes + kept * kValueBytes;
  for (std::size_t k = 0; k < values.size(); ++k) {
    const uint32_t own = magnitude(values[k]);
    if (own < least || (own == least && ties-- <= 0)) continue;
    const auto offset = static_cast<uint16_t>(k);
    std::memcpy(bytes, &values[k], kValueBytes);
    std::memcpy(offsets, &offset, kOffsetBytes);
    bytes += kValueBytes;
    offsets += kOffsetBytes;
  }
}

// Offsets come from a peer, so each is checked.
void decode_block(const std::byte* bytes, std::size_t kept, std::span<float> values) {
  std::fill(values.begin(), values.end(), 0.0F);
  const std::byte* offsets = bytes + kept * kValueBytes;
  for (std::size_t k = 0; k < kept; ++k) {
    uint16_t offset = 0;
    std::memcpy(&offset, offsets + k * kOffsetBytes, kOffsetBytes);
    if (offset >= values.size()) {
      throw PeerError("", fmt::format("top_k: offset {} in a block of {} values; its sender is not "
                                      "this program or is broken",
                                      offset, values.size()));
    }
    // A repeated offset does no harm: the later value counts.
    std::memcpy(&values[offset], bytes + k * kValueBytes, kValueBytes);
  }
}

}  // namespace

TopKCodec::TopKCodec(double top_fraction, int64_t block)
    : top_fraction_(top_fraction), block_(block) {
  FARSTEP_CHECK(top_fraction > 0 && top_fraction <= 1, "a top fraction of {}", top_fraction);
  if (block < 1 || block > kLargestBlock) {
    throw ConfigError(fmt::format("sync.codec.block is {}: a block of top_k has 1 to {} values",
                                  block, kLargestBlock));
  }
}

int64_t TopKCodec::kept(int64_t n) const {
  // At least one: a short last block would else never be sent, however large its residual.
  return std::max<int64_t>(1, std::llround(top_fraction_ * static_cast<double>(n)));
}

int64_t TopKCodec::encoded_bytes(int64_t n) const {
  const int64_t tail = n % block_;
  const int64_t all_kept = n / block_ * kept(block_) + (tail > 0 ? kept(tail) : 0);
  return all_kept * static_cast<int64_t>(kValueBytes + kOffsetBytes);
}

void TopKCodec::encode(std::span<const float> values, std::span<std::byte> bytes) const {
  check_size(bytes.size(), values.size());
  std::vector<uint32_t> scratch;
  while (!values.empty()) {
    const auto size = std::min(values.size(), static_cast<std::size_t>(block_));
    const auto count = static_cast<std::size_t>(kept(static_cast<int64_t>(size)));
    encode_block(values.first(size), count, bytes.data(), scratch);
    values = values.subspan(size);
    bytes = bytes.subspan(count * (kValueBytes + kOffsetBytes));
  }
}

void TopKCodec::decode(std::span<const std::byte> bytes, std::span<float> values) const {
  check_size(bytes.size(), values.size());
  while (!values.empty()) {
    const auto size = std::min(values.size(), static_cast<std::size_t>(block_));
    const auto count = static_cast<std::size_t>(kept(static_cast<int64_t>(size)));
    decode_block(bytes.data(), count, values.first(size));
    values = values.subspan(size);
    bytes = bytes.subspan(count * (kValueBytes + kOffsetBytes));
  }
}

}  // namespace farstep::outer_optimizer
