#include "trainer/data/pieces/piece_encoder.h"

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

using Ids = std::vector<int32_t>;

// Pieces a, b, ab, abb; c merges nothing.
PieceEncoder small_encoder() {
  PieceEncoder encoder;
  int32_t id = 0;
  for (const auto* piece : {"a", "b", "ab", "abb", "c"}) encoder.add_piece(piece, id++);
  encoder.set_merge(0, 1, {0, 2});
  encoder.set_merge(2, 1, {1, 3});
  return encoder;
}

Ids encoded(const PieceEncoder& encoder, std::string_view text) {
  WordCache cache;
  Ids ids, again;
  encoder.encode(text, cache, ids);
  encoder.encode(text, cache, again);
  CHECK(ids == again);
  return ids;
}

}  // namespace

TEST_CASE("pieces are merged, and nothing joins over neighbours that no piece has") {
  const auto encoder = small_encoder();
  CHECK(encoded(encoder, "abbabacb") == Ids{3, 2, 0, 4, 1});
  CHECK(encoded(encoder, "").empty());
  CHECK_FALSE(encoder.may_cut('a', 'b'));
  CHECK(encoder.may_cut('b', 'a'));
}

TEST_CASE("a literal stays whole") {
  auto encoder = small_encoder();
  encoder.add_literal("ba", 9);
  CHECK(encoded(encoder, "abab") == Ids{0, 9, 1});
  CHECK(encoded(encoder, "babab") == Ids{9, 9, 1});
}

TEST_CASE("a character that is no piece becomes bytes, the unknown, or an error") {
  auto encoder = small_encoder();
  CHECK_THROWS_WITH(encoded(encoder, "a\u00e9"), Catch::Contains("U+00E9"));
  encoder.set_unknown(7, false);
  CHECK(encoded(encoder, "a\u00e9\u00e9b") == Ids{0, 7, 7, 1});
  CHECK(encoder.may_cut(U'\u00e9', U'\u00e9'));
  encoder.set_unknown(7, true);
  CHECK(encoded(encoder, "a\u00e9\u00e9b\u00e9") == Ids{0, 7, 1, 7});
  CHECK_FALSE(encoder.may_cut(U'\u00e9', U'\u00e9'));
  std::array<int32_t, 256> bytes{};
  for (std::size_t i = 0; i < 256; ++i) bytes[i] = 100 + static_cast<int32_t>(i);
  encoder.set_bytes(bytes);
  CHECK(encoded(encoder, "a\u00e9") == Ids{0, 100 + 0xc3, 100 + 0xa9});
}

}  // namespace farstep
