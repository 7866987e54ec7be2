#include "wan/link/lanes.h"

#include "tests/support/catch.h"

using namespace farstep;
using namespace farstep::wan;

TEST_CASE("the usual connections are two with each of a few peers and one with each of many") {
  for (const int num_sites : {1, 2, 3, 4}) CHECK(lanes_for(num_sites) == 2);
  for (const int num_sites : {5, 8, 16, 64}) CHECK(lanes_for(num_sites) == 1);
}

TEST_CASE("long fast links get more connections") {
  CHECK(lanes_for(4, 2e8, 0.01) == 2);
  CHECK(lanes_for(4, 1e9, 0.2) == 9);
  CHECK(lanes_for(4, 1e11, 0.3) == 16);
  CHECK(lanes_for(16, 25e6, 0.08) == 1);
  CHECK(lanes_for(16, 4e9, 0.2) == 7);
}

TEST_CASE("links never get fewer connections than the usual ones") {
  for (const int num_sites : {1, 2, 5, 16}) {
    for (const double rate : {1e6, 1e8, 1e10}) {
      CHECK(lanes_for(num_sites, rate, 0.1) >= lanes_for(num_sites));
      CHECK(lanes_for(num_sites, rate, 0.1) <= 16);
    }
  }
}
