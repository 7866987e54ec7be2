#include "heterogeneity/profile/device_memory.h"
#include "tests/support/catch.h"
#include "tests/trainer/inner/watched_model.h"
#include "trainer/base/memory/out_of_memory.h"

namespace farstep {

TEST_CASE("the search for the largest micro-batch goes on where an inner step finds no room") {
  for (const int64_t room : {0, 1, 5}) {
    Watched model(with_room_for(room));
    InnerStep step(model, inner_config());
    const auto memory = heterogeneity::open_cpu_memory(int64_t{1} << 30, 1);
    const auto fits = [&](int64_t sequences) {
      return memory->holds(sequences, [&] { step.run(some_batch(sequences, 9, 1), sequences, 0); });
    };
    CHECK(heterogeneity::largest_that_fits(fits, 100) == room);
  }
}

TEST_CASE("an inner step without room fails with an error of its own") {
  const int64_t room = 2;
  Watched model(with_room_for(room));
  InnerStep step(model, inner_config());
  CHECK_THROWS_AS(step.run(some_batch(3, 9, 1), 3, 0), NoRoomError);
}

}  // namespace farstep
