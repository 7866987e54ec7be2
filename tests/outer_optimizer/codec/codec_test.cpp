#include "outer_optimizer/codec/codec.h"

#include <cstring>
#include <limits>
#include <vector>

#include "tests/support/catch.h"
#include "trainer/base/error.h"

using namespace farstep;

TEST_CASE("fp32 gives back every bit") {
  const Fp32Codec codec;
  using Limits = std::numeric_limits<float>;
  const std::vector<float> special{
      0.0F, -0.0F, Limits::denorm_min(), Limits::max(), Limits::infinity(), Limits::quiet_NaN(),
      -1.5F};
  for (std::size_t size = 0; size <= special.size(); ++size) {
    const std::vector<float> values(special.begin(),
                                    special.begin() + static_cast<std::ptrdiff_t>(size));
    std::vector<std::byte> bytes(
        static_cast<std::size_t>(codec.encoded_bytes(static_cast<int64_t>(size))));
    std::vector<float> decoded(size);
    codec.encode(values, bytes);
    codec.decode(bytes, decoded);
    REQUIRE((size == 0 || std::memcmp(values.data(), decoded.data(), size * sizeof(float)) == 0));
  }
}

TEST_CASE("a buffer of another size is a bug") {
  const Fp32Codec codec;
  std::vector<float> values(3);
  std::vector<std::byte> bytes(11);
  REQUIRE_THROWS_AS(codec.encode(values, bytes), InternalError);
  REQUIRE_THROWS_AS(codec.decode(bytes, values), InternalError);
}
