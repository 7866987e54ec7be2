#include "trainer/kernels/past_cache.h"

#include <vector>

#include "tests/support/catch.h"

namespace farstep {

TEST_CASE("a copy past the cache writes what it is told to and nothing beside it") {
  constexpr int64_t kAround = 20;
  for (int64_t offset = 0; offset < 17; ++offset) {
    for (const int64_t size : {0, 1, 15, 16, 17, 33, 1000}) {
      std::vector<float> from(static_cast<std::size_t>(size + 3));
      for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i + 1);
      std::vector<float> to(static_cast<std::size_t>(offset + size + kAround), -1.0F);
      copy_past_cache(from.data() + 3, size, to.data() + offset);
      for (int64_t i = 0; i < std::ssize(to); ++i) {
        const bool is_copied = i >= offset && i < offset + size;
        REQUIRE(to[i] == (is_copied ? from[i - offset + 3] : -1.0F));
      }
    }
  }
}

}  // namespace farstep
