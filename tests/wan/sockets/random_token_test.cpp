#include "wan/sockets/random_token.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "tests/support/catch.h"

namespace farstep::wan {
namespace {

TEST_CASE("tokens have 32 hexadecimal digits, and no two are equal") {
  std::set<std::string> tokens;
  for (int i = 0; i < 100; ++i) tokens.insert(random_token());
  CHECK(tokens.size() == 100);
  for (const auto& token : tokens) {
    CHECK(token.size() == 32);
    CHECK(
        std::ranges::all_of(token, [](unsigned char digit) { return std::isxdigit(digit) != 0; }));
  }
}

}  // namespace
}  // namespace farstep::wan
