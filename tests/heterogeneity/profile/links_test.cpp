#include "heterogeneity/profile/links.h"

#include <mutex>

#include "tests/support/catch.h"
#include "tests/wan/transport/meshes.h"
#include "tests/wan/transport/run_ranks.h"

namespace farstep {

namespace {

using Links = std::optional<std::vector<LinkProfile>>;

std::vector<Links> measure_all(const Transports& transports, const LinkProbe& probe,
                               const std::stop_token& stop = {}) {
  const RealClock clock;
  return run_ranks(static_cast<int>(transports.size()), [&](int rank) {
    return measure_links(*transports[static_cast<std::size_t>(rank)], probe, clock, stop);
  });
}

}  // namespace

TEST_CASE("Every site measures the way to every other") {
  for (const int n : {1, 2, 3, 5}) {
    const auto transports = memory_mesh(n);
    const auto links = measure_all(transports, {.seconds = 0.02, .most_bytes = 1 << 20});
    for (int rank = 0; rank < n; ++rank) {
      auto peers = site_names(n);
      peers.erase(peers.begin() + rank);
      const auto& own = links[static_cast<std::size_t>(rank)];
      REQUIRE(own);
      REQUIRE(own->size() == peers.size());
      for (std::size_t i = 0; i < peers.size(); ++i) {
        const auto& link = (*own)[i];
        CHECK(link.peer == peers[i]);
        CHECK(link.rtt_seconds.value() > 0);
        CHECK(link.rtt_seconds.value() < 1);
        CHECK(link.bandwidth_bits_per_second.value() > 1e6);
      }
    }
  }
}

TEST_CASE("A transfer stays within the bytes allowed") {
  for (const int64_t most : {int64_t{1}, int64_t{1000}, int64_t{1} << 16, int64_t{3} << 20}) {
    const auto transports = memory_mesh(2);
    const auto links = measure_all(transports, {.seconds = 10, .most_bytes = most});
    CHECK(links[0]->front().bandwidth_bits_per_second.value() > 0);
    const auto sent = transports[0]->link(1).sent_bytes;
    CHECK(sent >= static_cast<uint64_t>(most) / 4);
    CHECK(sent <= static_cast<uint64_t>(most) + 1000);  // pings, sizes and answers
  }
}

TEST_CASE("A measurement of links ends at a stop and names a peer that is lost") {
  std::stop_source source;
  source.request_stop();
  const auto stopped = memory_mesh(2);
  for (const auto& links : measure_all(stopped, {}, source.get_token())) CHECK(!links);

  const auto transports = memory_mesh(3);
  transports[2]->abort("node3", "node3 is gone");
  const RealClock clock;
  CHECK(peer_error([&] { measure_links(*transports[0], {}, clock, {}); }) ==
        "node3: node3 is gone");
}

TEST_CASE("The time to wait for a turn grows with the pairs") {
  CHECK(longest_turn_seconds(1, {.seconds = 1}) == 0);
  const double pair = longest_turn_seconds(2, {.seconds = 1});
  CHECK(pair > 4);
  CHECK(longest_turn_seconds(4, {.seconds = 1}) == Approx(6 * pair));
}

}  // namespace farstep
