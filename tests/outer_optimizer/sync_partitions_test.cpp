#include "outer_optimizer/sync_partitions.h"

#include <algorithm>
#include <random>

#include "tests/support/catch.h"

namespace farstep::outer_optimizer {
namespace {

const std::vector<double> kEqual{1, 1, 1};

TEST_CASE("a sync that nobody has begun before is cut by the shares, in whole blocks") {
  const std::vector<Arrived> members(3);
  CHECK(partitions_of_sync(10, {.shares = kEqual}, members) ==
        partitions_of({{0, 3}, {3, 6}, {6, 10}}));
  CHECK(partitions_of_sync(10, {.shares = kEqual, .block = 4}, members) ==
        partitions_of({{0, 4}, {4, 8}, {8, 10}}));
  CHECK(partitions_of_sync(10, {.shares = kEqual, .block = 64}, members) ==
        partitions_of({{0, 0}, {0, 0}, {0, 10}}));
  CHECK(partitions_of_sync(0, {.shares = kEqual}, members) ==
        partitions_of({{0, 0}, {0, 0}, {0, 0}}));
}

TEST_CASE("members keep what they reduced and received, and share out what a lost one had") {
  const Holding first{.partition = {{0, 40}}, .received = {{0, 16}}, .deltas = {1, 2, 3}};
  const Holding third{.partition = {{80, 120}}, .received = {{80, 88}}, .deltas = {1, 2, 3}};
  const std::vector<Arrived> members{{.delta = 1, .holding = &first},
                                     {.delta = 3, .holding = &third}};
  const std::vector<double> equal{1, 1};
  CHECK(partitions_of_sync(120, {.shares = equal, .block = 8}, members) ==
        std::vector<Partition>{{.received = {{0, 16}}, .awaited = {{16, 40}, {40, 64}}},
                               {.received = {{80, 88}}, .awaited = {{88, 120}, {64, 80}}}});
}

TEST_CASE("what was received of other deltas than those that count is sent again") {
  const Holding holding{.partition = {{0, 60}}, .received = {{0, 16}}, .deltas = {1, 2}};
  const std::vector<double> equal{1, 1};
  const auto received = [&](int64_t other) {
    return partitions_of_sync(
               120, {.shares = equal},
               std::vector<Arrived>{{.delta = 1, .holding = &holding}, {.delta = other}})[0]
        .received;
  };
  CHECK(received(2).size() == 1);
  CHECK(received(0).size() == 1);  // it counts nothing
  CHECK(received(7).empty());
}

TEST_CASE("what does not go together is cut anew") {
  const auto whole = partitions_of({{0, 60}, {60, 120}});
  const std::vector<double> equal{1, 1};
  for (const std::vector<Range>& other :
       {std::vector<Range>{{30, 90}}, {{60, 121}}, {{90, 60}}, {{60, 80}, {70, 90}}}) {
    const Holding first{.partition = {{0, 40}}, .received = {{0, 16}}, .deltas = {1, 2}};
    const Holding second{.partition = other, .received = {}, .deltas = {1, 2}};
    const std::vector<Arrived> members{{.delta = 1, .holding = &first},
                                       {.delta = 2, .holding = &second}};
    CHECK(partitions_of_sync(120, {.shares = equal}, members) == whole);
  }
  // What a site says of its receptions concerns its own partition alone.
  const Holding wild{.partition = {{0, 60}}, .received = {{-5, 200}, {10, 20}}, .deltas = {1, 2}};
  const std::vector<Arrived> members{{.delta = 1, .holding = &wild}, {.delta = 2}};
  CHECK(partitions_of_sync(120, {.shares = equal}, members) == whole);
}

TEST_CASE("whatever was lost, all is covered once") {
  std::mt19937 generator(1);
  const auto up_to = [&](int64_t most) {
    return std::uniform_int_distribution<int64_t>(0, most)(generator);
  };
  for (int trial = 0; trial < 500; ++trial) {
    const int64_t size = up_to(3000), block = 1 + up_to(40);
    auto count = static_cast<std::size_t>(1 + up_to(6));
    std::vector<Holding> holdings;
    for (int attempt = 0; attempt < 4; ++attempt) {
      std::vector<double> shares(count);
      for (auto& share : shares) share = static_cast<double>(up_to(3));
      shares[static_cast<std::size_t>(up_to(static_cast<int64_t>(count) - 1))] = 1;
      std::vector<Arrived> members(count);
      for (std::size_t place = 0; place < holdings.size(); ++place) {
        members[place] = {.delta = 1, .holding = &holdings[place]};
      }
      const auto partitions = partitions_of_sync(size, {.shares = shares, .block = block}, members);
      std::vector<Range> all;
      for (const auto& partition : partitions) {
        for (const auto& range : partition.ranges()) all.push_back(range);
      }
      std::ranges::sort(all, {},
                        [](const Range& range) { return std::pair(range.begin, range.end); });
      int64_t next = 0;
      for (const auto& range : all) {
        REQUIRE(range.begin == next);
        REQUIRE((range.begin % block == 0 || range.begin == size));
        next = range.end;
      }
      REQUIRE(next == size);
      // A part of what each one awaited has come, and some are lost.
      holdings.clear();
      for (const auto& partition : partitions) {
        Holding holding{
            .partition = partition.ranges(), .received = partition.received, .deltas = {1}};
        for (const auto& range : partition.awaited) {
          const auto come = std::min(range.size(), up_to(range.size()) / block * block);
          if (come > 0) holding.received.push_back({range.begin, range.begin + come});
        }
        if (holdings.empty() || up_to(3) > 0) holdings.push_back(std::move(holding));
      }
      count = holdings.size() + static_cast<std::size_t>(up_to(1));  // and one comes
    }
  }
}

}  // namespace
}  // namespace farstep::outer_optimizer
