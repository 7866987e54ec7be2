// Encoded values from a peer, under every codec.

#include <algorithm>

#include "outer_optimizer/codec/make_codec.h"
#include "tests/fuzz/fuzz_input.h"

using namespace farstep;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  outer_optimizer::CodecConfig config;
  config.kind = static_cast<outer_optimizer::CodecKind>(
      data[0] % enum_names(outer_optimizer::CodecKind{}).size());
  const auto codec = outer_optimizer::make_codec(config);
  std::vector<float> values(data[1]);
  // As many bytes as the receiver asks for; the input is repeated.
  std::vector<std::byte> bytes(static_cast<std::size_t>(codec->encoded_bytes(std::ssize(values))));
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte{data[i % size]};
  try {
    codec->decode(bytes, values);
    codec->add_decoded(bytes, 0.5F, values);
  } catch (const PeerError&) {
  }
  return 0;
}
