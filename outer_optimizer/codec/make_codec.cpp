#include "outer_optimizer/codec/make_codec.h"

#include <algorithm>
#include <array>

#include "outer_optimizer/codec/block_codecs.h"
#include "outer_optimizer/codec/float_codecs.h"
#include "outer_optimizer/codec/top_k_codec.h"
#include "trainer/base/error.h"

namespace farstep::outer_optimizer {

namespace {

template <typename Kind>
std::unique_ptr<Codec> make_plain(const CodecConfig& /*config*/) {
  return std::make_unique<Kind>();
}

template <typename Kind>
std::unique_ptr<Codec> make_of_blocks(const CodecConfig& config) {
  return std::make_unique<Kind>(config.block.value_or(Kind::kDefaultBlock));
}

std::unique_ptr<Codec> make_top_k(const CodecConfig& config) {
  return std::make_unique<TopKCodec>(config.top_fraction,
                                     config.block.value_or(TopKCodec::kDefaultBlock));
}

// A new codec adds a row.
struct CodecRow {
  CodecKind kind;
  std::unique_ptr<Codec> (*make)(const CodecConfig& config);
};
constexpr std::array kCodecs{
    CodecRow{CodecKind::kFp32, make_plain<Fp32Codec>},
    CodecRow{CodecKind::kFp16, make_plain<Fp16Codec>},
    CodecRow{CodecKind::kBf16, make_plain<Bf16Codec>},
    CodecRow{CodecKind::kInt8, make_of_blocks<Int8Codec>},
    CodecRow{CodecKind::kInt4, make_of_blocks<Int4Codec>},
    CodecRow{CodecKind::kInt2, make_of_blocks<Int2Codec>},
    CodecRow{CodecKind::kTopK, make_top_k},
};

}  // namespace

std::unique_ptr<Codec> make_codec(const CodecConfig& config) {
  const auto row = std::ranges::find(kCodecs, config.kind, &CodecRow::kind);
  FARSTEP_CHECK(row != kCodecs.end(), "codec {} has no row", name_of(config.kind));
  return row->make(config);
}

}  // namespace farstep::outer_optimizer
