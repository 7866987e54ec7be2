// Exchanges that lose a site in their middle, and are done again by the others.
#include <algorithm>
#include <iterator>
#include <optional>
#include <random>

#include "outer_optimizer/codec/make_codec.h"
#include "outer_optimizer/sync_partitions.h"
#include "tests/outer_optimizer/exchange/exchange_ranks.h"
#include "tests/support/catch.h"
#include "tests/support/dying_transport.h"
#include "trainer/base/error.h"

namespace farstep::outer_optimizer {
namespace {

// A site of a sync, over all its exchanges.
struct Site {
  std::string name;
  int64_t delta_number = 0;
  double weight = 0;
  Values delta;
  ReceivedDeltas received = {};
  std::optional<Holding> holding = {};
};

// The sites that are left of a sync, and what they do.
struct Sync {
  std::vector<Site> sites;
  const Codec& codec;
  PartitionRule rule = PartitionRule::kBytes;
  std::vector<double> shares = {};  // of as many sites; empty: equal ones
  std::vector<uint64_t> sent_bytes = {};

  int count() const { return static_cast<int>(sites.size()); }
  int64_t size() const { return std::ssize(sites.front().delta); }

  SyncPoint point() const {
    SyncPoint point{.codec = &codec};
    double sum = 0;
    for (const auto& site : sites) sum += site.weight;
    std::vector<Arrived> arrived;
    for (const auto& site : sites) {
      point.coefficients.push_back(site.weight / sum);
      arrived.push_back({.delta = site.weight == 0 ? 0 : site.delta_number,
                         .holding = site.holding ? &*site.holding : nullptr});
    }
    const std::vector<double> equal(sites.size(), 1.0);
    const std::vector<int64_t> borders{0, size() / 3, size() / 2};
    point.partitions = partitions_of_sync(size(),
                                          {.rule = rule,
                                           .shares = shares.size() == sites.size() ? shares : equal,
                                           .borders = borders,
                                           .block = codec.block_values()},
                                          arrived);
    return point;
  }

  // Returns what each site has in the end. If the site at `dies` was lost, the result is empty.
  std::vector<Values> exchange(std::optional<int> dies = {}, int64_t last_send = 0) {
    const auto common = point();
    std::vector<std::string> names;
    std::vector<int64_t> numbers;
    for (const auto& site : sites) {
      names.push_back(site.name);
      if (site.weight > 0) numbers.push_back(site.delta_number);
    }
    auto transports = connect_in_memory(names, 10);
    auto means = wan::run_ranks(count(), [&](int rank) -> Values {
      auto& site = sites[static_cast<std::size_t>(rank)];
      DyingTransport transport(transports, rank, rank == dies ? last_send : -1);
      DirectExchange exchange(transport, 1 << 20);
      auto values = site.delta;
      auto own = common;
      own.received = &site.received;
      site.holding = {.partition = own.partitions[static_cast<std::size_t>(rank)].ranges(),
                      .received = {},
                      .deltas = numbers};
      try {
        exchange.average(own, values);
      } catch (const PeerError&) {
        values.clear();
      }
      site.holding->received = site.received.ranges();
      return values;
    });
    sent_bytes.clear();
    for (auto& transport : transports) sent_bytes.push_back(transport->uplink().sent_bytes);
    const auto failed = [](const Values& mean) { return mean.empty(); };
    return std::ranges::any_of(means, failed) ? std::vector<Values>() : means;
  }

  // A sync of the same sites and deltas that begins without anything.
  Sync afresh() const {
    Sync other{.sites = {}, .codec = codec, .rule = rule, .shares = shares};
    for (const auto& site : sites) {
      other.sites.push_back({.name = site.name,
                             .delta_number = site.delta_number,
                             .weight = site.weight,
                             .delta = site.delta});
    }
    return other;
  }
};

Sync sync_of(int num_sites, std::size_t size, const Codec& codec) {
  Sync sync{.sites = {}, .codec = codec};
  const auto deltas = random_deltas(num_sites, size);
  for (int rank = 0; rank < num_sites; ++rank) {
    sync.sites.push_back({.name = fmt::format("node{}", rank),
                          .delta_number = 100 + rank,
                          .weight = 1.0 + rank,
                          .delta = deltas[static_cast<std::size_t>(rank)]});
  }
  return sync;
}

// Enough for several chunks of every codec a site.
constexpr std::size_t kSize = 6'000'007;

TEMPLATE_TEST_CASE_SIG(
    "the others go on with what they have, to the bits of an exchange without the lost site", "",
    ((CodecKind kKind, int kLost), kKind, kLost), (CodecKind::kFp32, 0), (CodecKind::kFp16, 1),
    (CodecKind::kInt8, 2), (CodecKind::kInt4, 3), (CodecKind::kTopK, 0)) {
  const auto codec = make_codec({.kind = kKind, .top_fraction = 0.2});
  auto sync = sync_of(4, kSize, *codec);
  // It begins its fifth chunk, which is when it has the means of the first one.
  REQUIRE(sync.exchange(kLost, 24).empty());
  sync.sites.erase(sync.sites.begin() + kLost);
  int64_t held = 0;
  for (const auto& site : sync.sites) {
    for (const auto& range : site.holding->received) held += range.size();
  }
  CHECK(held > 0);
  CHECK(held < sync.size());
  const auto means = sync.exchange();
  auto fresh = sync.afresh();
  const auto expected = fresh.exchange();
  REQUIRE(means.size() == 3);
  for (const auto& mean : means) REQUIRE(mean == expected[0]);
  // Two others need not send what a site holds.
  uint64_t sent = 0, sent_afresh = 0;
  for (const auto bytes : sync.sent_bytes) sent += bytes;
  for (const auto bytes : fresh.sent_bytes) sent_afresh += bytes;
  CHECK(sent + static_cast<uint64_t>(2 * codec->encoded_bytes(held)) ==
        Approx(sent_afresh).epsilon(0.001));
}

TEST_CASE("a site that is lost at any moment of several exchanges changes no bit") {
  const auto codec = make_codec({.kind = CodecKind::kInt8});
  std::mt19937 generator(3);
  const auto up_to = [&](int most) { return std::uniform_int_distribution(0, most)(generator); };
  for (int trial = 0; trial < 20; ++trial) {
    auto sync = sync_of(5, 400'000 + static_cast<std::size_t>(trial), *codec);
    sync.rule = trial % 4 == 0 ? PartitionRule::kLayer : PartitionRule::kBytes;
    if (trial % 3 == 0) sync.shares = {1, 0, 2, 1, 0};
    std::vector<Values> means;
    while (means.empty()) {
      const bool can_lose = sync.count() > 1 && up_to(3) > 0;
      const int lost = up_to(sync.count() - 1);
      means = can_lose ? sync.exchange(lost, up_to(20)) : sync.exchange();
      if (means.empty()) {
        sync.sites.erase(sync.sites.begin() + lost);
        sync.shares.clear();
      }
    }
    for (const auto& mean : means) REQUIRE(mean == means[0]);
    // By layer, blocks begin where a site's range does.
    if (sync.rule == PartitionRule::kBytes) REQUIRE(means[0] == sync.afresh().exchange()[0]);
  }
}

TEST_CASE("a line that fails between two sites costs nothing that has come") {
  const auto codec = make_codec({.kind = CodecKind::kInt8});
  auto sync = sync_of(2, kSize, *codec);
  const auto expected = sync.afresh().exchange();
  REQUIRE(sync.exchange(1, 10).empty());
  REQUIRE_FALSE(sync.sites[0].holding->received.empty());
  CHECK(sync.exchange() == expected);
}

TEST_CASE("a site that takes the place of a lost one brings nothing, or all of its own delta") {
  const auto codec = make_codec({.kind = CodecKind::kInt8});
  for (const double weight : {0.0, 2.0}) {
    auto sync = sync_of(3, kSize, *codec);
    REQUIRE(sync.exchange(1, 20).empty());
    auto& other = sync.sites[1];
    const auto lost_range = other.holding->partition;
    other = {
        .name = other.name, .delta_number = 200, .weight = weight, .delta = Values(kSize, 0.125F)};
    const auto partitions = sync.point().partitions;
    CHECK(partitions[1] == Partition{.received = {}, .awaited = lost_range});
    CHECK(partitions[0].received.empty() == (weight > 0));
    const auto means = sync.exchange();
    REQUIRE(means.size() == 3);
    for (const auto& mean : means) REQUIRE(mean == sync.afresh().exchange()[0]);
  }
}

TEST_CASE("an exchange that has not received what it is said to have is a bug") {
  const auto codec = make_codec({.kind = CodecKind::kFp32});
  ReceivedDeltas received;
  const std::vector<std::string> senders{"b"};
  CHECK_THROWS_AS(received.begin(*codec, {.received = {{0, 4}}}, senders), InternalError);
  received.begin(*codec, {.awaited = {{0, 8}}}, senders);
  received.note({0, 4});
  received.begin(*codec, {.received = {{0, 4}}, .awaited = {{4, 8}}}, senders);
  CHECK(received.room("b", {4, 8}).size() == 16);
  CHECK(received.room("c", {4, 8}).empty());
  CHECK(received.room("b", {6, 10}).empty());
  CHECK_THROWS_AS(received.begin(*codec, {.received = {{0, 5}}, .awaited = {{5, 8}}}, senders),
                  InternalError);
  CHECK_THROWS_AS(received.begin(*codec, {.received = {{0, 4}}, .awaited = {{4, 8}}},
                                 std::vector<std::string>{"b", "c"}),
                  InternalError);
  received.forget();
  CHECK(received.ranges().empty());
}

}  // namespace
}  // namespace farstep::outer_optimizer
