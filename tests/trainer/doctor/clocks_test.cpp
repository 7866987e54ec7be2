#include "trainer/doctor/clocks.h"

#include "tests/support/catch.h"

namespace farstep {

using Catch::Contains;

TEST_CASE("a clock that nobody sets is a warning with the remedy") {
  CHECK(clock_finding(std::nullopt).grade == Grade::kLater);
  CHECK(clock_finding(SystemClock{true, 0.002}).grade == Grade::kOk);
  const auto unset = clock_finding(SystemClock{false, 16});
  CHECK(unset.grade == Grade::kWarning);
  CHECK_THAT(unset.text, Contains("timedatectl set-ntp true"));
  CHECK(system_clock());  // any Linux says something
}

TEST_CASE("a peer's clock may differ by a second, and must not by a minute") {
  for (const double sign : {1.0, -1.0}) {
    CHECK(clock_difference_finding("lyon", sign * 0.9).grade == Grade::kOk);
    CHECK(clock_difference_finding("lyon", sign * 1.1).grade == Grade::kWarning);
    const auto wrong = clock_difference_finding("lyon", sign * 61);
    CHECK(wrong.grade == Grade::kFault);
    CHECK(wrong.exit_code == 2);
    CHECK_THAT(wrong.text, Contains(sign > 0 ? "lyon is 61.00 s ahead of" : "61.00 s behind"));
  }
}

}  // namespace farstep
