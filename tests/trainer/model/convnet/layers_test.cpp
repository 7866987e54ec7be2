#include "trainer/model/convnet/layers.h"

#include "tests/support/catch.h"

namespace farstep {

TEST_CASE("norms have as many groups as divide the channels, with two channels in each") {
  struct Row {
    int64_t channels, most, groups;
  };
  for (const auto& [channels, most, groups] : {Row{64, 8, 8},
                                               {64, 32, 32},
                                               {64, 64, 32},
                                               {64, 1, 1},
                                               {16, 8, 8},
                                               {12, 8, 6},
                                               {18, 8, 6},
                                               {17, 8, 1},
                                               {3, 8, 1},
                                               {2, 8, 1},
                                               {1, 8, 1},
                                               {20, 7, 5}}) {
    INFO(channels << " channels, at most " << most);
    CHECK(groups_of(channels, most) == groups);
  }
}

}  // namespace farstep
