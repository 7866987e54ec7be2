// Creates a codec from its configuration.
#pragma once

#include <memory>

#include "outer_optimizer/codec/codec.h"
#include "outer_optimizer/codec/codec_config.h"

namespace farstep::outer_optimizer {

// Returns the codec for `config`; a block that is null takes the codec's default. Throws
// ConfigError naming sync.codec.block if the codec cannot have such blocks. Thread-safe.
std::unique_ptr<Codec> make_codec(const CodecConfig& config);

}  // namespace farstep::outer_optimizer
