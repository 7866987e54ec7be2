// A block travels as one scale and a short code for each value. Blocks are small, because one large
// value makes the scale coarse for all that share it.
#include "outer_optimizer/codec/block_codecs.h"

#include <algorithm>

#include "outer_optimizer/codec/block_formats.h"
#include "trainer/base/error.h"
#include "trainer/base/processor/vector_dispatch.h"

namespace farstep::outer_optimizer {

namespace {

template <typename Format>
void encode_blocks(const float* values, std::byte* bytes, int64_t n, int64_t block) {
  for (; n > 0; n -= block, values += block) {
    const int64_t size = std::min(n, block);
    encode_block<Format>(values, bytes, size);
    bytes += Format::kScaleBytes + code_bytes<Format>(size);
  }
}

// AVX-512's loops store 64 bytes at a time, and the rest of a block byte by byte. So blocks whose
// codes are not multiples of 64 bytes use AVX2. int4 in blocks of 32 reaches 2.0 GB/s by AVX-512,
// and 5.0 by AVX2 (docs/results/codecs.md).
template <typename Format>
InstructionSet encoding_set(int64_t block) {
  const bool fits = code_bytes<Format>(block) % 64 == 0;
  return fits ? instruction_set() : std::min(instruction_set(), InstructionSet::kAvx2);
}

template <typename Format>
void decode_blocks(const std::byte* bytes, float* values, int64_t n, int64_t block) {
  for (; n > 0; n -= block, values += block) {
    const int64_t size = std::min(n, block);
    decode_block<Format>(bytes, values, size);
    bytes += Format::kScaleBytes + code_bytes<Format>(size);
  }
}

}  // namespace

template <typename Format>
const int64_t BlockCodec<Format>::kDefaultBlock = Format::kDefaultBlock;

template <typename Format>
BlockCodec<Format>::BlockCodec(int64_t block) : block_(block) {
  if (block < 1 || block > kLargestBlock || block % kPerByte<Format> != 0) {
    throw ConfigError(
        fmt::format("sync.codec.block is {}: a block of {} has 1 to {} values, in multiples of {}",
                    block, Format::kName, kLargestBlock, kPerByte<Format>));
  }
}

template <typename Format>
std::string_view BlockCodec<Format>::name() const {
  return Format::kName;
}

template <typename Format>
int64_t BlockCodec<Format>::encoded_bytes(int64_t n) const {
  // Each block has a scale, also a shorter last one.
  const int64_t blocks = (n + block_ - 1) / block_;
  return blocks * Format::kScaleBytes + code_bytes<Format>(n);
}

template <typename Format>
void BlockCodec<Format>::encode(std::span<const float> values, std::span<std::byte> bytes) const {
  check_size(bytes.size(), values.size());
  run_vector_code_of<encode_blocks<Format>>(encoding_set<Format>(block_), values.data(),
                                            bytes.data(), std::ssize(values), block_);
}

template <typename Format>
void BlockCodec<Format>::decode(std::span<const std::byte> bytes, std::span<float> values) const {
  check_size(bytes.size(), values.size());
  run_vector_code<decode_blocks<Format>>(bytes.data(), values.data(), std::ssize(values), block_);
}

template class BlockCodec<Int8Format>;
template class BlockCodec<Int4Format>;
template class BlockCodec<Int2Format>;

}  // namespace farstep::outer_optimizer
