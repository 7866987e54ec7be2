#include "wan/transport/transport.h"

#include <set>

#include "tests/support/catch.h"
#include "trainer/base/error.h"

using namespace farstep;

TEST_CASE("tags of different generations rounds fragments and phases differ") {
  std::set<uint64_t> tags;
  for (const uint64_t generation : {0, 1, 65535}) {
    for (const uint64_t round : {0, 1, (1 << 24) - 1}) {
      for (const uint64_t fragment : {0, 1, 65535}) {
        for (const uint64_t phase : {0, 1, 255}) {
          tags.insert(make_tag(generation, round, fragment, phase));
        }
      }
    }
  }
  CHECK(tags.size() == 81);
  CHECK(make_tag(65536 + 3, 0, 0, 0) == make_tag(3, 0, 0, 0));
}

TEST_CASE("a tag's parts must fit") {
  CHECK_THROWS_AS(make_tag(0, 1 << 24, 0, 0), InternalError);
  CHECK_THROWS_AS(make_tag(0, 0, 1 << 16, 0), InternalError);
  CHECK_THROWS_AS(make_tag(0, 0, 0, 1 << 8), InternalError);
}
