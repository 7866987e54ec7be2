#include "outer_optimizer/codec/make_codec.h"

#include "outer_optimizer/codec/block_codecs.h"
#include "outer_optimizer/codec/float_codecs.h"
#include "outer_optimizer/codec/top_k_codec.h"
#include "trainer/base/error.h"

namespace farstep {

std::unique_ptr<Codec> make_codec(const CodecConfig& config) {
  const auto block_or = [&](int64_t otherwise) { return config.block.value_or(otherwise); };
  switch (config.kind) {
    case CodecKind::kFp32:
      return std::make_unique<Fp32Codec>();
    case CodecKind::kFp16:
      return std::make_unique<Fp16Codec>();
    case CodecKind::kBf16:
      return std::make_unique<Bf16Codec>();
    case CodecKind::kInt8:
      return std::make_unique<Int8Codec>(block_or(Int8Codec::kDefaultBlock));
    case CodecKind::kInt4:
      return std::make_unique<Int4Codec>(block_or(Int4Codec::kDefaultBlock));
    case CodecKind::kInt2:
      return std::make_unique<Int2Codec>(block_or(Int2Codec::kDefaultBlock));
    case CodecKind::kTopK:
      return std::make_unique<TopKCodec>(config.top_fraction, block_or(TopKCodec::kDefaultBlock));
  }
  throw InternalError(fmt::format("codec {}", static_cast<int>(config.kind)));
}

}  // namespace farstep
