#include "wan/roster/link_reports.h"

#include "tests/support/catch.h"

namespace farstep::wan {

const Deadlines kLinkDeadlines{.join_seconds = 100, .connect_seconds = 10};

TEST_CASE("a link that carries nothing counts after five seconds in which both ends live") {
  LinkReports reports(kLinkDeadlines, 1);
  for (int second = 0; second <= 7; ++second) {
    reports.note_standing("a", "b", true, second);
    reports.note_standing("c", "b", second > 3, second);  // b was silent before
    if (second < 5) CHECK(reports.standing_for_long(second).empty());
  }
  const auto links = reports.standing_for_long(7);
  REQUIRE(links.size() == 1);
  CHECK((links[0].first.member == "a" && links[0].first.suspect == "b" && links[0].second == 0));
  // Another suspect is another report, and one that is not repeated ends.
  reports.note_standing("a", "c", true, 8);
  CHECK(reports.standing_for_long(8).empty());
  reports.note_standing("c", "b", true, 9);
  CHECK(reports.standing_for_long(9).size() == 1);
  CHECK(reports.standing_for_long(13).empty());
  for (int second = 20; second <= 26; ++second) reports.note_standing("a", "b", true, second);
  reports.forget_standing();
  CHECK(reports.standing_for_long(26).empty());
}

TEST_CASE("a severed site waits longer each time, until its links work") {
  LinkReports reports(kLinkDeadlines, 1);
  CHECK_FALSE(reports.wait_seconds("a", 0));
  for (const double pause : {15.0, 30.0, 60.0, 90.0, 90.0}) {
    reports.sever("a", pause == 15 ? "b" : "", 1000);
    CHECK(reports.wait_seconds("a", 1000) == pause);
    CHECK(reports.wait_seconds("a", 1010) == pause - 10);
    CHECK_FALSE(reports.wait_seconds("a", 1000 + pause));
  }
  CHECK_FALSE(reports.wait_seconds("b", 1000));
  CHECK(reports.has_missed("a", "b"));
  CHECK_FALSE(reports.has_missed("a", "c"));
  CHECK_FALSE(reports.has_missed("c", "b"));
  reports.forget_severed({"a", "c"});
  CHECK_FALSE(reports.wait_seconds("a", 1000));
  CHECK_FALSE(reports.has_missed("a", "b"));
  reports.sever("a", "", 1000);
  CHECK(reports.wait_seconds("a", 1000) == 15);
}

}  // namespace farstep::wan
