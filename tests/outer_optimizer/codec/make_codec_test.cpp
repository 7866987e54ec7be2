#include "outer_optimizer/codec/make_codec.h"

#include <string>

#include "tests/support/catch.h"
#include "trainer/base/error.h"

using namespace farstep;
using namespace farstep::outer_optimizer;

TEST_CASE("every kind of the config makes the codec of its name") {
  const auto names = enum_names(CodecKind{});
  for (std::size_t kind = 0; kind < names.size(); ++kind) {
    REQUIRE(make_codec({.kind = static_cast<CodecKind>(kind)})->name() == names[kind]);
  }
}

TEST_CASE("int2 and top_k feed nothing back unless the config says so") {
  for (const auto kind : {CodecKind::kFp16, CodecKind::kBf16, CodecKind::kInt8, CodecKind::kInt4,
                          CodecKind::kInt2, CodecKind::kTopK}) {
    const bool is_coarse = kind == CodecKind::kInt2 || kind == CodecKind::kTopK;
    CHECK(CodecConfig{.kind = kind}.feeds_back() == !is_coarse);
    for (const bool chosen : {true, false}) {
      CHECK(CodecConfig{.kind = kind, .error_feedback = chosen}.feeds_back() == chosen);
    }
  }
}

TEST_CASE("the config's block replaces the codec's own") {
  REQUIRE(make_codec({.kind = CodecKind::kInt8})->block_values() == 256);
  REQUIRE(make_codec({.kind = CodecKind::kInt4})->block_values() == 160);
  REQUIRE(make_codec({.kind = CodecKind::kInt4, .block = 32})->block_values() == 32);
  REQUIRE(make_codec({.kind = CodecKind::kTopK, .block = 100})->block_values() == 100);
  REQUIRE(make_codec({.kind = CodecKind::kTopK, .top_fraction = 0.5})->encoded_bytes(10) == 30);
  REQUIRE(make_codec({.kind = CodecKind::kBf16, .block = 100})->block_values() == 1);
}

TEST_CASE("a block that the codec cannot have is a config error") {
  REQUIRE_THROWS_AS(make_codec({.kind = CodecKind::kInt4, .block = 33}), ConfigError);
}
