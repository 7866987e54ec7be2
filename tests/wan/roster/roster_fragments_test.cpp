#include "tests/wan/roster/table.h"

namespace farstep::wan {
namespace {

TEST_CASE("fragments follow each other in a round and rounds when all fragments are committed") {
  Table table({"a", "b"}, 3);
  table.join();
  for (int64_t index = 0; index < 7; ++index) {
    const int64_t round = index / 3 + 1;
    const int64_t fragment = index % 3;
    CHECK(round == 1 + index / 3);
    const ArriveMessage arrival{1, round, fragment, {.fragments = 3}, "aa"};
    const VoteMessage ballot{1, round, fragment, "bb"};
    CHECK(table.receive("a", arrival).empty());
    const auto go = table.receive("b", arrival);
    REQUIRE(receivers<Go>(go) == Names{"a", "b"});
    CHECK(std::get<Go>(go[0].message).fragment == fragment);
    CHECK(table.receive("b", ballot).empty());
    const auto committed = table.receive("a", ballot);
    REQUIRE(receivers<CommittedMessage>(committed) == Names{"a", "b"});
    CHECK(std::get<CommittedMessage>(committed[0].message).fragment == fragment);
    CHECK(only<CommittedMessage>(table.receive("b", ballot)).fragment == fragment);
  }
  CHECK_THAT(only<ErrorMessage>(table.receive("a", ArriveMessage{1, 3, 2, {.fragments = 3}, "aa"}))
                 .message,
             Catch::Contains("sent arrive of round 3, fragment 2") &&
                 Catch::Contains("that is round 3, fragment 1 of generation 1"));
}

TEST_CASE("the number of fragments may change from round to round") {
  Table table({"a", "b"});
  table.join();
  for (const auto& [round, fragments] : {std::pair{1, 1}, {2, 4}, {3, 2}, {4, 1}}) {
    for (int64_t fragment = 0; fragment < fragments; ++fragment) {
      for (const auto* site : {"a", "b"}) {
        table.receive(site, ArriveMessage{1, round, fragment, {.fragments = fragments}, "aa"});
      }
      table.receive("a", VoteMessage{1, round, fragment, "bb"});
      CHECK(receivers<CommittedMessage>(
                table.receive("b", VoteMessage{1, round, fragment, "bb"})) == Names{"a", "b"});
    }
  }
  CHECK(table.receive("a", ArriveMessage{1, 5, 0, {}, "aa"}).empty());
}

TEST_CASE("sites that cut a round differently stop the run") {
  Table table({"a", "b"});
  table.join();
  table.receive("a", ArriveMessage{1, 1, 0, {.fragments = 2}, "aa"});
  const auto messages = table.receive("b", ArriveMessage{1, 1, 0, {.fragments = 4}, "aa"});
  CHECK(receivers<StopMessage>(messages) == Names{"a", "b"});
  CHECK(std::get<StopMessage>(messages[0].message).reason ==
        "b syncs round 1 in 4 fragments, others in 2");
}

TEST_CASE("sites resume in the middle of a round from the newest sync that all have") {
  Table table({"a", "b"}, 3);
  auto a = registration("a");
  a.resume = Resume::kAlways;
  a.states = {{5, "aa"}, {3, "bb"}};
  auto b = registration("b");
  b.resume = Resume::kAlways;
  b.states = {{5, "aa"}, {6, "cc"}};
  table.receive("a", a);
  const auto messages = table.receive("b", b);
  REQUIRE(receivers<Welcome>(messages).size() == 2);
  const auto& welcome = std::get<Welcome>(messages[0].message);
  CHECK(welcome.start_syncs == 5);
  CHECK_THAT(welcome.left, Catch::Contains("leaves that after 6 fragments' syncs of site b"));
  CHECK_THAT(only<ErrorMessage>(table.receive("a", VoteMessage{1, 2, 1, "bb"})).message,
             Catch::Contains("where no site has arrived"));
  const ArriveMessage arrival{1, 2, 2, {.fragments = 3}, "aa"};
  CHECK(table.receive("a", arrival).empty());
  only<ErrorMessage>(table.receive("b", ArriveMessage{1, 2, 1, {.fragments = 3}, "aa"}));
  CHECK(receivers<Go>(table.receive("b", arrival)) == Names{"a", "b"});
  table.receive("a", VoteMessage{1, 2, 2, "bb"});
  table.receive("b", VoteMessage{1, 2, 2, "bb"});
  CHECK(table.receive("a", ArriveMessage{1, 3, 0, {.fragments = 3}, "cc"}).empty());
}

}  // namespace
}  // namespace farstep::wan
