// What every Transport promises, over shaped ones.

#include "tests/support/catch.h"
#include "tests/wan/transport/transport_contract.h"
#include "wan/emulate/shaped_transport.h"

using namespace farstep;
using namespace farstep::wan;

namespace {

constexpr LinkShape kMild{.rate_bits_per_second = 2e9, .delay_seconds = 0.002, .loss = 0.001};
constexpr double kUplink = 1e9;

Transports shaped(Transports inner, double stall_seconds) {
  static RealClock clock;
  Transports mesh;
  for (auto& transport : inner) {
    const ShapedTransport::Options options{
        .uplink_bits_per_second = kUplink, .stall_seconds = stall_seconds, .seed = mesh.size()};
    mesh.push_back(std::make_unique<ShapedTransport>(std::move(transport), kMild, options, clock));
  }
  return mesh;
}

Transports over_memory(int n, double stall_seconds) {
  return shaped(memory_mesh(n, stall_seconds), stall_seconds);
}

Transports over_gloo(int n, double stall_seconds) {
  return shaped(gloo_mesh(n, stall_seconds), stall_seconds);
}

// Runs `check` over both.
template <typename Check, typename... Arguments>
void check_both(Check check, Arguments... arguments) {
  check(over_memory, arguments...);
  check(over_gloo, arguments...);
}

}  // namespace

TEST_CASE("shaped transport delivers every size between all ranks") {
  for (const int n : {1, 2, 3}) {
    for (const std::size_t bytes : {0, 1, 1001, 1 << 20}) check_both(check_all_pairs, n, bytes);
  }
}
TEST_CASE("shaped transport tells what went over its links") {
  check_both(check_links);
}
TEST_CASE("shaped transport keeps tags apart and messages of a tag in order") {
  check_both(check_tags);
}
TEST_CASE("shaped transport matches a receive with an earlier or a later send") {
  check_both(check_early_and_late);
}
TEST_CASE("shaped transport wakes a wait when it is aborted") {
  check_both(check_abort);
}
TEST_CASE("shaped transport names a rank that goes away") {
  check_both(check_dying_rank);
}
TEST_CASE("shaped transport names a peer that stalls") {
  check_both(check_stall);
}
TEST_CASE("shaped transport is dead after a transfer was given up") {
  check_both(check_given_up);
}
TEST_CASE("shaped transport survives sides that disagree on a size") {
  check_both(check_size_mismatch);
}
