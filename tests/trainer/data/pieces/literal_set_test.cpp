#include "trainer/data/pieces/literal_set.h"

#include "tests/support/catch.h"

namespace farstep {

TEST_CASE("the leftmost literal is found, and of those there the longest") {
  LiteralSet set;
  CHECK_FALSE(set.next("anything", 0));
  int32_t value = 0;
  for (const auto* literal : {"ab", "abc", "b", "<|end|>", "bcd", "\u4e2d\u6587"}) {
    set.add(literal, value++);
  }
  const auto next = [&](std::string_view text, std::size_t from) {
    const auto match = set.next(text, from);
    REQUIRE(match);
    CHECK(match->begin >= from);
    return std::pair(match->value, match->end);
  };
  CHECK(next("xxabcd", 0) == std::pair(1, std::size_t{5}));
  CHECK(next("xxabd", 0) == std::pair(0, std::size_t{4}));
  CHECK(next("xbcd", 0) == std::pair(4, std::size_t{4}));
  CHECK(next("ab", 1) == std::pair(2, std::size_t{2}));
  CHECK(next("<|e<|end|>", 0) == std::pair(3, std::size_t{10}));
  CHECK(next("\u4e2d\u6587", 0) == std::pair(5, std::size_t{6}));
  CHECK_FALSE(set.next("<|en", 0));
  CHECK_FALSE(set.next("", 0));
  CHECK_FALSE(set.at("xab", 0));
  CHECK(set.at("xab", 1)->end == 3);
}

}  // namespace farstep
