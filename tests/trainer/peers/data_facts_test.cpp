#include "trainer/peers/data_facts.h"

#include "tests/support/catch.h"
#include "tests/support/memory_store.h"
#include "trainer/base/error.h"

namespace farstep {

TEST_CASE("a site without data learns what the master tells, also when it tells it again") {
  MemoryStore store(10);
  const Json facts{{"eos", 2}, {"mean", {0.25, 0.1234567890123456}}};
  tell_data_facts(facts, store);
  tell_data_facts(facts, store);  // as after a resume, at a coordinator that went on
  CHECK(told_data_facts("a", store) == facts);
}

TEST_CASE("what is not told, or cannot be read, is the master's fault") {
  MemoryStore silent(0.05);
  CHECK_THROWS_AS(told_data_facts("a", silent), PeerError);
  for (const std::string text : {"{\"eos\":", "[[[[[[[[[[1]]]]]]]]]]"}) {
    MemoryStore store(10);
    store.put("data_facts", text);
    CHECK_THROWS_WITH(told_data_facts("a", store), Catch::StartsWith("what a tells of its data"));
  }
}

}  // namespace farstep
