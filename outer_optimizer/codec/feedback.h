// Error feedback: what an encoding loses is kept and sent along with the next.
//
// A residual e holds what has not been sent yet. A sync adds the delta to it, sends the encoding of
// the sum, and keeps what that lost: e <- e + delta; send Q(e); e <- e - Q(e). What was sent so far
// plus the residual is the sum of all deltas. Pure functions; thread-safe.
#pragma once

#include "outer_optimizer/codec/codec.h"

namespace farstep {

// Encodes `values` into `bytes` as codec.encode does, and sets residual_out[k] = values[k] -
// decoded[k]. All three are as long as encode() has it; `residual_out` may be `values`. The
// residual of values that do not decode to finite ones is not finite.
void encode_with_feedback(const Codec& codec, std::span<const float> values,
                          std::span<std::byte> bytes, std::span<float> residual_out);

}  // namespace farstep
