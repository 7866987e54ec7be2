#include "outer_optimizer/codec/feedback.h"

#include <algorithm>
#include <cstring>

#include "trainer/base/error.h"

namespace farstep::outer_optimizer {

// Error feedback: what rounding loses of a delta is added to the next one. Piece by piece: the
// values are encoded, copied and decoded while they are in the cache.
void encode_with_feedback(const Codec& codec, std::span<const float> values,
                          std::span<std::byte> bytes, std::span<float> residual_out) {
  FARSTEP_CHECK(residual_out.size() == values.size(), "{} residuals for {} values",
                residual_out.size(), values.size());
  codec.check_size(bytes.size(), values.size());
  const auto piece = static_cast<std::size_t>(piece_values(codec));
  for (std::size_t begin = 0; begin < values.size(); begin += piece) {
    const std::size_t count = std::min(values.size() - begin, piece);
    const auto size_bytes =
        static_cast<std::size_t>(codec.encoded_bytes(static_cast<int64_t>(count)));
    const auto residual = residual_out.subspan(begin, count);
    codec.encode(values.subspan(begin, count), bytes.first(size_bytes));
    // memmove, as the two may be the same memory.
    std::memmove(residual.data(), values.data() + begin, residual.size_bytes());
    codec.add_decoded(bytes.first(size_bytes), -1.0F, residual);
    bytes = bytes.subspan(size_bytes);
  }
}

}  // namespace farstep::outer_optimizer
