#include "trainer/peers/agreed_start.h"

#include <future>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/memory_store.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

// What each site, a thread of this process, is told; empty where it may start.
std::vector<std::string> refusals(const std::vector<std::string>& hashes) {
  MemoryStore store(10);
  std::vector<std::string> members;
  for (std::size_t i = 0; i < hashes.size(); ++i) members.push_back("s" + std::to_string(i));
  std::vector<std::future<std::string>> running;
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    running.push_back(std::async(std::launch::async, [&, i]() -> std::string {
      try {
        require_same_start(hashes[i], "do this", {.generation = 3, .members = members, .self = i},
                           store);
      } catch (const DataError& error) {
        return error.what();
      }
      return "";
    }));
  }
  std::vector<std::string> found;
  for (auto& one : running) found.push_back(one.get());
  return found;
}

}  // namespace

TEST_CASE("sites with equal weights start") {
  CHECK(refusals({"aa"}) == std::vector<std::string>{""});
  CHECK(refusals({"aa", "aa", "aa"}) == std::vector<std::string>(3));
}

TEST_CASE("sites with other weights are all told every checksum and what to do") {
  const auto found = refusals({"aa", "ab", "aa"});
  CHECK_THAT(found[0], Catch::Contains("s0 has aa, s1 has ab, s2 has aa; do this"));
  CHECK(found == std::vector<std::string>(3, found[0]));
}

TEST_CASE("a site that ends after a refusal does not keep the others from theirs") {
  MemoryStore store(0.05);
  store.put("3/start/b", "ab");  // then it vanishes
  const View view{.generation = 3, .members = {"a", "b"}, .self = 0};
  CHECK_THROWS_AS(require_same_start("aa", "do this", view, store), DataError);
}

TEST_CASE("sites at different steps of a round take the schedule of the furthest") {
  const RateConfig config;
  const RateCycle cycle = first_cycle(config, 10);
  const RateCycle other{.begin = 2, .end = 10};
  const std::vector<RateState> own{rate_state(config, cycle, 8), rate_state(config, other, 8.5),
                                   rate_state(config, cycle, 8.5)};
  MemoryStore store(10);
  const std::vector<std::string> members{"a", "b", "c"};
  std::vector<std::future<RateState>> running;
  for (std::size_t i = 0; i < own.size(); ++i) {
    running.push_back(std::async(std::launch::async, [&, i] {
      return agreed_rate(own[i], {.generation = 3, .members = members, .self = i}, store);
    }));
  }
  for (auto& one : running) {
    const auto agreed = one.get();
    CHECK(agreed.position == 8.5);
    CHECK(agreed.cycle == other);
  }
}

TEST_CASE("all sites go back to the same round, or are told whose differs") {
  using Round = std::optional<int64_t>;
  const std::vector<std::string> members{"a", "b", "c"};
  const auto told = [&](const std::vector<Round>& rounds) {
    MemoryStore store(10);
    std::vector<std::future<std::string>> running;
    for (std::size_t i = 0; i < rounds.size(); ++i) {
      running.push_back(std::async(std::launch::async, [&, i]() -> std::string {
        try {
          require_same_round(rounds[i], {.generation = 3, .members = members, .self = i}, store);
          return "";
        } catch (const ConfigError& error) {
          return error.what();
        }
      }));
    }
    std::vector<std::string> texts;
    for (auto& one : running) texts.push_back(one.get());
    return texts;
  };
  CHECK(told({2, 2, 2}) == std::vector<std::string>{"", "", ""});
  CHECK(told({{}, {}, {}}) == std::vector<std::string>{"", "", ""});
  const auto texts = told({2, 2, {}});
  CHECK_THAT(texts[0], Catch::Contains("this site goes back to round 2, and c does not"));
  CHECK_THAT(texts[2], Catch::Contains("resumes from its newest checkpoint, and a does not"));
  CHECK_THAT(told({{}, 2, 1})[2], Catch::Contains("goes back to round 1, and a does not"));
}

TEST_CASE("a schedule that cannot be is refused, with the site that tells it") {
  const RateConfig config;
  MemoryStore store(10);
  const View first{.generation = 3, .members = {"a", "b"}, .self = 0};
  const View second{.generation = 3, .members = {"a", "b"}, .self = 1};
  auto spoiled = rate_state(config, first_cycle(config, 10), 8);
  spoiled.cycle.begin = 20;
  auto telling = std::async(
      std::launch::async, [&] { CHECK_THROWS_AS(agreed_rate(spoiled, second, store), PeerError); });
  CHECK_THROWS_WITH(agreed_rate(rate_state(config, first_cycle(config, 10), 8), first, store),
                    Catch::Contains("b tells") && Catch::Contains("begins after 20"));
  telling.get();
}

}  // namespace farstep
