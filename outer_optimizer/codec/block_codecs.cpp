#include "outer_optimizer/codec/block_codecs.h"

#include <algorithm>

#include "outer_optimizer/codec/block_formats.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

template <typename Format>
struct EncodeBlocks {
  static void run(const float* values, std::byte* bytes, int64_t n, int64_t block) {
    for (; n > 0; n -= block, values += block) {
      const int64_t size = std::min(n, block);
      encode_block<Format>(OneThread(), values, bytes, size);
      bytes += Format::kScaleBytes + code_bytes<Format>(size);
    }
  }
};

template <typename Format>
struct DecodeBlocks {
  static void run(const std::byte* bytes, float* values, int64_t n, int64_t block) {
    for (; n > 0; n -= block, values += block) {
      const int64_t size = std::min(n, block);
      decode_whole_bytes(bytes, values, size);
      bytes += Format::kScaleBytes + code_bytes<Format>(size);
    }
  }

  // As decode_block() does, in loops that compilers vectorise.
  static void decode_whole_bytes(const std::byte* __restrict bytes, float* __restrict values,
                                 int64_t n) {
    const float scale = read_scale<Format>(bytes);
    const std::byte* __restrict codes = bytes + Format::kScaleBytes;
    constexpr int64_t kCount = kPerByte<Format>;
    const int64_t whole = n / kCount;
    for (int64_t k = 0; k < whole; ++k) {
      for (int64_t j = 0; j < kCount; ++j) {
        values[k * kCount + j] = unpack<Format>(codes[k], j, scale);
      }
    }
    for (int64_t k = whole * kCount; k < n; ++k) {
      values[k] = unpack<Format>(codes[whole], k - whole * kCount, scale);
    }
  }
};

}  // namespace

template <typename Format>
const int64_t BlockCodec<Format>::kDefaultBlock = Format::kDefaultBlock;

template <typename Format>
BlockCodec<Format>::BlockCodec(int64_t block, InstructionSet set) : block_(block), set_(set) {
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
  const int64_t blocks = (n + block_ - 1) / block_;
  return blocks * Format::kScaleBytes + code_bytes<Format>(n);
}

template <typename Format>
void BlockCodec<Format>::encode(std::span<const float> values, std::span<std::byte> bytes) const {
  check_size(bytes.size(), values.size());
  run_kernel<EncodeBlocks<Format>>(set_, values.data(), bytes.data(), std::ssize(values), block_);
}

template <typename Format>
void BlockCodec<Format>::decode(std::span<const std::byte> bytes, std::span<float> values) const {
  check_size(bytes.size(), values.size());
  run_kernel<DecodeBlocks<Format>>(set_, bytes.data(), values.data(), std::ssize(values), block_);
}

template class BlockCodec<Int8Format>;
template class BlockCodec<Int4Format>;
template class BlockCodec<Int2Format>;

}  // namespace farstep
