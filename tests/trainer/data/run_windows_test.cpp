#include "trainer/data/run_windows.h"

#include "tests/support/catch.h"
#include "trainer/base/error.h"
#include "trainer/config/json_fields.h"

namespace farstep {

namespace {

using Ranges = std::vector<SequenceRange>;
using Steps = std::map<std::string, int64_t>;

// Three sites that reserve 5 steps of 2, 4 of 3 and 3 of 4.
RunWindows reserved(int64_t round = 1) {
  RunWindows windows;
  windows.reserve(round, "a", 0, 2, 10);
  windows.reserve(round, "b", 0, 3, 12);
  windows.reserve(round, "c", 0, 4, 12);
  return windows;
}

}  // namespace

TEST_CASE("sites that use what they have reserved leave nothing") {
  auto windows = reserved();
  windows.settle(1, {{"a", 5}, {"b", 4}, {"c", 3}});
  CHECK(windows.pool() == WindowPool(34));
  CHECK(windows.state().reserved_sequences.empty());
}

TEST_CASE("what a site has not used comes back, and all of a lost one") {
  auto windows = reserved();
  windows.settle(1, {{"a", 4}, {"c", 1}});
  CHECK(windows.pool().returned() == Ranges{{8, 22}});
  CHECK(windows.pool().next() == 26);
  // Nobody has more steps than it has reserved, and a newcomer has none at all.
  windows = reserved();
  windows.settle(1, {{"a", 1'000'000'000}, {"b", 4}, {"c", 0}, {"d", 0}});
  CHECK(windows.pool() == WindowPool(22));
}

TEST_CASE("the rest of a round counts its own steps, and a lost site leaves both parts") {
  auto windows = reserved();
  windows.reserve(1, "a", 5, 2, 6);
  windows.reserve(1, "b", 4, 3, 9);
  windows.settle(1, {{"a", 7}});
  CHECK(windows.pool().returned() == Ranges{{10, 34}});
  CHECK(windows.pool().next() == 38);
}

TEST_CASE("what comes back in pieces is used and left in the order of the steps") {
  auto windows = reserved();
  windows.settle(1, {{"a", 2}, {"b", 2}, {"c", 3}});
  CHECK(windows.pool().returned() == Ranges{{4, 10}, {16, 22}});
  windows.reserve(2, "a", 0, 2, 8);
  windows.reserve(2, "b", 0, 3, 6);
  windows.settle(2, {{"a", 2}, {"b", 1}});
  CHECK(windows.pool().returned() == Ranges{{8, 10}, {16, 18}, {21, 22}});
  CHECK(windows.pool().next() == 34);
}

TEST_CASE("a round is settled when its sync is known, maybe after the next has begun") {
  auto windows = reserved(1);
  windows.reserve(2, "a", 0, 2, 10);
  windows.settle(1, {{"b", 4}, {"c", 3}});
  CHECK(windows.pool().returned() == Ranges{{0, 10}});
  CHECK(windows.state().reserved_sequences.size() == 1);
  windows.settle(2, {});
  CHECK(windows.pool().returned() == Ranges{{0, 10}});
  CHECK(windows.pool().next() == 34);
}

TEST_CASE("a round that begins anew gives back its own windows alone") {
  auto windows = reserved(1);
  const auto before = windows;
  windows.reserve(2, "a", 0, 2, 10);
  windows.reserve(2, "b", 0, 3, 3);
  windows.withdraw(2);
  CHECK(windows == before);
  windows.withdraw(2);
  CHECK(windows == before);
}

TEST_CASE("a state is restored, also one of before windows came back") {
  auto windows = reserved(1);
  windows.settle(1, {{"a", 4}, {"c", 3}});
  windows.reserve(2, "c", 4, 2, 20);
  windows.reserve(3, "a", 0, 1, 1);
  const auto json = to_json(windows.state());
  CHECK(RunWindows(read_json<RunWindowsState>(json, "state.json")) == windows);
  const auto older = read_json<RunWindowsState>(Json{{"run_sequences", 77}}, "state.json");
  CHECK(RunWindows(older).pool() == WindowPool(77));
}

TEST_CASE("a state that has a sequence twice is refused") {
  const auto is_refused = [](Ranges returned, Ranges held) {
    const RunWindowsState state{
        .run_sequences = 20,
        .returned_sequences = std::move(returned),
        .reserved_sequences = {{.round = 1, .site = "a", .ranges = std::move(held)}}};
    try {
      const RunWindows windows(state);
      return false;
    } catch (const DataError& error) {
      CHECK_THAT(error.what(), Catch::Contains("twice"));
      return true;
    }
  };
  CHECK_FALSE(is_refused({{2, 4}, {6, 8}}, {{4, 6}, {8, 20}}));
  CHECK(is_refused({{2, 4}, {3, 5}}, {}));
  CHECK(is_refused({{2, 4}}, {{3, 5}}));
  CHECK(is_refused({}, {{3, 5}, {4, 6}}));
  CHECK(is_refused({{19, 21}}, {}));
  CHECK(is_refused({{5, 5}}, {}));
  CHECK(is_refused({}, {{7, 6}}));
}

}  // namespace farstep
