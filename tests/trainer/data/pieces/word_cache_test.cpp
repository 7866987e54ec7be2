#include "trainer/data/pieces/word_cache.h"

#include "tests/support/catch.h"

namespace farstep {

TEST_CASE("a cache keeps words, and forgets all when it is full") {
  WordCache cache;
  CHECK_FALSE(cache.find(""));
  cache.insert("", {});
  REQUIRE(cache.find(""));
  CHECK(cache.find("")->empty());
  std::size_t lost = 0;
  for (int32_t i = 0; i < 100'000; ++i) {
    const auto word = "word " + std::to_string(i);
    CHECK_FALSE(cache.find(word));
    const std::vector<int32_t> ids(static_cast<std::size_t>(i % 4), i);
    cache.insert(word, ids);
    const auto kept = cache.find(word);
    REQUIRE(kept);
    CHECK(std::vector<int32_t>(kept->begin(), kept->end()) == ids);
    if (i > 0 && !cache.find("word " + std::to_string(i - 1))) ++lost;
  }
  CHECK(lost > 0);
  CHECK(lost < 5);
}

TEST_CASE("a cache that was given back is used again, and none is used twice at a time") {
  WordCaches caches;
  const std::vector<int32_t> ids = {1};
  {
    WordCaches::Lease first(caches), second(caches);
    (*first).insert("a", ids);
    CHECK_FALSE((*second).find("a"));
  }
  WordCaches::Lease first(caches), second(caches);
  CHECK((*first).find("a").has_value() != (*second).find("a").has_value());
}

}  // namespace farstep
