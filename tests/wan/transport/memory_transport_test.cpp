#include "tests/support/memory_transport.h"

#include "tests/support/catch.h"
#include "tests/wan/transport/transport_contract.h"

using namespace farstep;
using namespace farstep::wan;

TEST_CASE("memory transport delivers every size between all ranks") {
  for (int n = 1; n <= 8; ++n) {
    for (const std::size_t bytes : {0, 1, 3, 1001}) check_all_pairs(memory_mesh, n, bytes);
  }
  check_all_pairs(memory_mesh, 3, 1 << 20);
}
TEST_CASE("memory transport tells what went over its links") {
  check_links(memory_mesh);
}
TEST_CASE("memory transport keeps tags apart and messages of a tag in order") {
  check_tags(memory_mesh);
}
TEST_CASE("memory transport matches a receive with an earlier or a later send") {
  check_early_and_late(memory_mesh);
}
TEST_CASE("memory transport wakes a wait when it is aborted") {
  check_abort(memory_mesh);
}
TEST_CASE("memory transport names a rank that goes away") {
  check_dying_rank(memory_mesh);
}
TEST_CASE("memory transport names a peer that stalls") {
  check_stall(memory_mesh);
}
TEST_CASE("memory transport is dead after a transfer was given up") {
  check_given_up(memory_mesh);
}
TEST_CASE("memory transport refuses sides that disagree on a size") {
  check_size_mismatch(memory_mesh);
}
