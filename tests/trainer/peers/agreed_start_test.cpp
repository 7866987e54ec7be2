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

}  // namespace farstep
