#include "wan/transport/mesh.h"

#include "tests/support/catch.h"

using namespace farstep;

TEST_CASE("the usual connections are two with each of a few peers and one with each of many") {
  for (const int num_sites : {1, 2, 3, 4}) CHECK(usual_lanes(num_sites) == 2);
  for (const int num_sites : {5, 8, 16, 64}) CHECK(usual_lanes(num_sites) == 1);
}
