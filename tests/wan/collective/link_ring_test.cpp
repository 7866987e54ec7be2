#include "wan/collective/link_ring.h"

#include <functional>
#include <numeric>

#include "tests/support/catch.h"
#include "tests/wan/transport/meshes.h"
#include "tests/wan/transport/run_ranks.h"

using namespace farstep;
using namespace farstep::wan;

namespace {

using Values = std::vector<float>;

// Sums of these are exact, whatever the order.
Values values_of(int rank, std::size_t size) {
  Values values(size);
  for (std::size_t k = 0; k < size; ++k) values[k] = static_cast<float>(k % 1009) + 3.0F * rank;
  return values;
}

Values sum_of_all(int n, std::size_t size) {
  Values sum(size);
  for (int rank = 0; rank < n; ++rank) {
    const auto values = values_of(rank, size);
    std::ranges::transform(sum, values, sum.begin(), std::plus<>());
  }
  return sum;
}

constexpr std::size_t kChunk = (128 << 10) / sizeof(float);
// Of many chunks. A sanitizer looks at each value's way.
#ifdef FARSTEP_SANITIZED
constexpr std::size_t kLargest = 200'003;
#else
constexpr std::size_t kLargest = 1'000'003;
#endif

}  // namespace

TEST_CASE("a ring over links sums the sites' values whatever their number") {
  for (int n = 1; n <= 5; ++n) {
    for (const bool is_gloo : {false, true}) {
      const auto sites = is_gloo ? gloo_mesh(n) : memory_mesh(n);
      // Nothing, less than a value a site, a chunk more or less, many chunks and several rounds.
      for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{3}, n * kChunk - 1,
                                     n * kChunk, n * kChunk + 1, kLargest}) {
        for (const int64_t segment_bytes : {LinkRing::kSegmentBytes, int64_t{300'004}}) {
          const auto sums = run_ranks(n, [&](int rank) {
            LinkRing ring(*sites[rank], 1, segment_bytes);
            auto values = values_of(rank, size);
            ring.all_reduce(values);
            return values;
          });
          for (const auto& sum : sums) REQUIRE(sum == sum_of_all(n, size));
        }
      }
    }
  }
}

TEST_CASE("all sites get the same bits where rounding depends on the order") {
  const auto sites = memory_mesh(4);
  const auto sums = run_ranks(4, [&](int rank) {
    LinkRing ring(*sites[rank], 1);
    Values values(10'000);
    for (std::size_t k = 0; k < values.size(); ++k) {
      values[k] = 1.0F / static_cast<float>(3 + rank + 7 * k);
    }
    ring.all_reduce(values);
    ring.all_reduce(values);  // a second time: messages of the first one are not taken for its own
    return values;
  });
  for (std::size_t k = 0; k < sums[0].size(); ++k) {
    double sum = 0;
    for (int rank = 0; rank < 4; ++rank) sum += 1.0 / static_cast<double>(3 + rank + 7 * k);
    REQUIRE(sums[0][k] == Approx(4 * sum).epsilon(1e-6));
  }
  for (const auto& sum : sums) REQUIRE(sum == sums[0]);
}

TEST_CASE("each site sends 2 (N-1) / N of the bytes, to the next one only") {
  for (int n = 2; n <= 4; ++n) {
    const auto sites = memory_mesh(n);
    const auto size = static_cast<std::size_t>(n) * 2 * kChunk;
    run_ranks(n, [&](int rank) {
      LinkRing ring(*sites[rank], 1);
      auto values = values_of(rank, size);
      ring.all_reduce(values);
      return 0;
    });
    for (int rank = 0; rank < n; ++rank) {
      for (int peer = 0; peer < n; ++peer) {
        if (peer == rank) continue;
        const auto wanted = peer == (rank + 1) % n ? 2 * (n - 1) * size / n * sizeof(float) : 0;
        CHECK(sites[rank]->link(peer).sent_bytes == wanted);
      }
    }
  }
}

TEST_CASE("a ring over links ends everywhere when one site ends") {
  auto sites = gloo_mesh(3);
  const auto errors = run_ranks(3, [&](int rank) -> std::string {
    if (rank == 2) {
      sites[2].reset();
      return "";
    }
    LinkRing ring(*sites[rank], 1);
    Values values(1'000'000);
    const auto error = peer_error([&] { ring.all_reduce(values); });
    CHECK(peer_error([&] { ring.all_reduce(values); }) == error);
    return error;
  });
  CHECK_THAT(errors[0], Catch::StartsWith("node3: "));
  CHECK_THAT(errors[1], Catch::StartsWith("node3: "));
}
