#include "wan/collective/all_to_all.h"

#include "tests/support/catch.h"
#include "tests/wan/transport/meshes.h"
#include "tests/wan/transport/run_ranks.h"

using namespace farstep;

namespace {

using Bytes = std::vector<std::byte>;

struct Parts {
  explicit Parts(int n) : content(n) {}
  std::vector<std::span<const std::byte>> to_send() const {
    return {content.begin(), content.end()};
  }
  std::vector<std::span<std::byte>> to_receive() { return {content.begin(), content.end()}; }
  std::vector<Bytes> content;
};

// Sizes that differ from pair to pair, zero among them.
std::size_t uneven(int from, int to, std::size_t bytes) {
  return bytes * static_cast<std::size_t>((from + 2 * to) % 3);
}

void check_collectives(const Transports& mesh, std::size_t bytes) {
  const int n = static_cast<int>(mesh.size());
  const auto right = run_ranks(n, [&](int rank) {
    Parts outgoing(n), incoming(n), gathered(n);
    for (int peer = 0; peer < n; ++peer) {
      outgoing.content[peer] = pattern(rank, peer, uneven(rank, peer, bytes));
      incoming.content[peer].resize(uneven(peer, rank, bytes));
      gathered.content[peer].resize(uneven(peer, 0, bytes));
    }
    all_to_all(*mesh[rank], {.phase = 1}, outgoing.to_send(), incoming.to_receive());
    auto& own = gathered.content[rank];
    own = pattern(rank, 0, own.size(), 5);
    all_gather(*mesh[rank], {.phase = 2}, own, gathered.to_receive());
    bool is_right = true;
    for (int peer = 0; peer < n; ++peer) {
      is_right &= incoming.content[peer] == pattern(peer, rank, uneven(peer, rank, bytes));
      is_right &= gathered.content[peer] == pattern(peer, 0, uneven(peer, 0, bytes), 5);
    }
    return is_right;
  });
  CHECK(right == std::vector<bool>(n, true));
}

}  // namespace

TEST_CASE("all to all and all gather deliver every part for any number of ranks and sizes") {
  for (int n = 1; n <= 8; ++n) {
    for (const std::size_t bytes : {0, 1, 3, 1001}) check_collectives(memory_mesh(n), bytes);
  }
}

TEST_CASE("collectives work over gloo") {
  for (const int n : {1, 2, 5}) check_collectives(gloo_mesh(n), 1001);
  check_collectives(gloo_mesh(3), (2 << 20) + 1);
}

TEST_CASE("collectives of several threads with their own tags do not meet") {
  const auto mesh = memory_mesh(2);
  const auto right = run_ranks(8, [&](int thread) {
    const int rank = thread % 2, lane = thread / 2;
    Parts parts(2);
    parts.content = {Bytes(100), Bytes(100)};
    parts.content[rank] = pattern(rank, 0, 100, lane);
    all_gather(*mesh[rank], {.phase = 10 + static_cast<uint32_t>(lane)}, parts.content[rank],
               parts.to_receive());
    return parts.content[1 - rank] == pattern(1 - rank, 0, 100, lane);
  });
  CHECK(right == std::vector<bool>(8, true));
}

TEST_CASE("a rank that is lost in a collective is named by those who wait") {
  auto mesh = memory_mesh(3);
  const auto errors = run_ranks(3, [&](int rank) -> std::string {
    if (rank == 2) {
      mesh[2].reset();
      return "";
    }
    Parts parts(3);
    parts.content = {Bytes(100), Bytes(100), Bytes(100)};
    return peer_error(
        [&] { all_gather(*mesh[rank], {.phase = 1}, parts.content[rank], parts.to_receive()); });
  });
  CHECK_THAT(errors[0], Catch::StartsWith("node3: "));
  CHECK_THAT(errors[1], Catch::StartsWith("node3: "));
}

TEST_CASE("parts that do not fit the ranks are refused") {
  const auto mesh = memory_mesh(1);
  Parts two(2), small(1), large(1);
  two.content = {Bytes(1), Bytes(1)};
  small.content = {Bytes(1)};
  large.content = {Bytes(2)};
  CHECK_THROWS_AS(all_to_all(*mesh[0], {.phase = 1}, two.to_send(), two.to_receive()),
                  InternalError);
  CHECK_THROWS_AS(all_to_all(*mesh[0], {.phase = 1}, small.to_send(), large.to_receive()),
                  InternalError);
}
