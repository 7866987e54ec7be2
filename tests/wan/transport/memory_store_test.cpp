#include "tests/support/memory_store.h"

#include "tests/support/catch.h"
#include "tests/wan/transport/run_ranks.h"
#include "trainer/base/error.h"

using namespace farstep;
using namespace farstep::wan;

TEST_CASE("a store delivers values to those who ask before and after they are put") {
  MemoryStore store(5);
  const auto values = run_ranks(4, [&](int rank) {
    const std::string binary("\0x", 2);
    store.put("key" + std::to_string(rank), binary + std::to_string(rank));
    return store.get("key" + std::to_string((rank + 1) % 4));
  });
  for (int rank = 0; rank < 4; ++rank) {
    CHECK(values[rank] == std::string("\0x", 2) + std::to_string((rank + 1) % 4));
  }
}

TEST_CASE("sites share a value each through a store") {
  MemoryStore store(5);
  const auto shared =
      run_ranks(3, [&](int rank) { return share(store, "k", std::to_string(rank), rank, 3); });
  for (const auto& values : shared) CHECK(values == std::vector<std::string>{"0", "1", "2"});
}

TEST_CASE("a store's get ends with PeerError naming the key when nobody puts it") {
  MemoryStore store(0.02);
  CHECK_THROWS_AS(store.get("missing"), PeerError);
  CHECK_THROWS_WITH(store.get("missing"), Catch::Contains("missing"));
}

TEST_CASE("a store's key is written once") {
  MemoryStore store(0.02);
  store.put("key", "value");
  CHECK_NOTHROW(store.put("key", "value"));
  CHECK_THROWS_AS(store.put("key", "other"), InternalError);
}
