#include "trainer/base/system/printable.h"

#include "tests/support/catch.h"

namespace farstep {

TEST_CASE("text of others becomes printable ASCII of limited length") {
  CHECK(printable("", 10).empty());
  CHECK(printable("plain ~text", 11) == "plain ~text");
  CHECK(printable("a\x1b[2J\n\xff", 40) == "a\\x1b[2J\\x0a\\xff");
  CHECK(printable("0123456789a", 10) == "0123456...");
}

}  // namespace farstep
