// Error feedback (Seide et al. 2014): keeps what an encoding loses and sends it with the next one.
//
// A residual e holds the values that were not sent yet. A sync adds the delta, sends the encoding
// of the sum, and keeps the rest: e <- e + delta; send Q(e); e <- e - Q(e). So all sent values plus
// the residual equal the sum of all deltas. Pure functions; thread-safe.
#pragma once

#include "outer_optimizer/codec/codec.h"

namespace farstep::outer_optimizer {

// Encodes `values` into `bytes` as codec.encode() does, and sets residual_out[k] = values[k] -
// decoded[k]. Sizes are those of encode(); `residual_out` may be `values`. The residual of values
// that do not decode to finite ones is not finite.
void encode_with_feedback(const Codec& codec, std::span<const float> values,
                          std::span<std::byte> bytes, std::span<float> residual_out);

}  // namespace farstep::outer_optimizer
