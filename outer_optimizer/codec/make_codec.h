// From the configuration to a codec.
#pragma once

#include <memory>

#include "outer_optimizer/codec/codec.h"
#include "trainer/config/run_config.h"

namespace farstep {

// The codec that `config` describes; a null block is the codec's default. Thread-safe. Throws
// ConfigError that names sync.codec.block if the codec cannot have such blocks.
std::unique_ptr<Codec> make_codec(const CodecConfig& config);

}  // namespace farstep
