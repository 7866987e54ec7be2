#include "trainer/data/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "tests/support/catch.h"

namespace farstep {

namespace {

std::vector<int64_t> images(int64_t size, uint64_t seed, uint64_t epoch) {
  const Permutation permutation(size, seed, epoch);
  std::vector<int64_t> result;
  for (int64_t i = 0; i < size; ++i) result.push_back(permutation(i));
  return result;
}

}  // namespace

TEST_CASE("a permutation takes every value once") {
  for (const int64_t size : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 100, 4095, 4096, 4097, 20011}) {
    for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}}) {
      auto values = images(size, seed, 3);
      std::sort(values.begin(), values.end());
      std::vector<int64_t> expected(values.size());
      std::iota(expected.begin(), expected.end(), 0);
      CHECK(values == expected);
    }
  }
}

TEST_CASE("seed and epoch both change the permutation") {
  const auto base = images(1000, 1, 0);
  CHECK(images(1000, 1, 0) == base);
  CHECK(images(1000, 2, 0) != base);
  CHECK(images(1000, 1, 1) != base);
  CHECK(images(1000, 0, 1) != images(1000, 1, 0));
}

TEST_CASE("a permutation mixes well") {
  constexpr int64_t kSize = 10000;
  const auto values = images(kSize, 5, 0);
  double distance = 0, step = 0;
  int64_t fixed = 0, successors = 0;
  for (int64_t i = 0; i < kSize; ++i) {
    const auto value = values[static_cast<std::size_t>(i)];
    distance += std::abs(static_cast<double>(value - i));
    fixed += value == i;
    if (i == 0) continue;
    const auto before = values[static_cast<std::size_t>(i - 1)];
    step += std::abs(static_cast<double>(value - before));
    successors += value == before + 1;
  }
  // For random permutations both means are a third of the size, and both counts are about 1.
  CHECK(distance / kSize == Approx(kSize / 3.0).epsilon(0.03));
  CHECK(step / kSize == Approx(kSize / 3.0).epsilon(0.03));
  CHECK(fixed < 8);
  CHECK(successors < 8);
}

TEST_CASE("the order is the same on every platform") {
  // Computed by another program (Python's integers) from the definition.
  const Permutation permutation(1000, 42, 0);
  const std::vector<int64_t> first = {permutation(0), permutation(1), permutation(2),
                                      permutation(999)};
  CHECK(first == std::vector<int64_t>{986, 920, 852, 158});
}

TEST_CASE("a huge permutation costs no memory and stays in range") {
  constexpr int64_t kSize = (int64_t{1} << 40) + 12345;
  const Permutation permutation(kSize, 7, 2);
  std::set<int64_t> seen;
  for (int64_t i = 0; i < 1000; ++i) {
    const auto value = permutation(kSize - 1 - i);
    CHECK((value >= 0 && value < kSize));
    seen.insert(value);
  }
  CHECK(seen.size() == 1000);
}

TEST_CASE("unequal sites take no window twice in an epoch") {
  constexpr int64_t kWindows = 101;
  // Sequences of every site in every round: sites come, go, and change their speed.
  const std::vector<std::vector<int64_t>> rounds = {{3, 8, 1, 13}, {0, 9, 2, 20},  {5, 5, 5, 5},
                                                    {1, 30, 0, 2}, {17, 2, 40, 1}, {60, 1, 1, 1}};
  std::vector<int64_t> taken;
  const Sampler sampler(DataOrder::kShuffled, 9, kWindows);
  WindowPool pool;
  for (const auto& round : rounds) {
    int64_t offset = 0;
    for (const int64_t sequences : round) {
      const RoundRange range{.pool = pool, .offset = offset, .num_members = 4};
      for (int64_t k = 0; k < sequences; ++k) taken.push_back(sampler.draw(range, k).number);
      offset += sequences;
    }
    pool.take(offset);
  }
  REQUIRE(taken.size() > 2 * kWindows);
  for (std::size_t epoch = 0; epoch < 2; ++epoch) {
    const auto start = taken.begin() + static_cast<int64_t>(epoch) * kWindows;
    CHECK(std::set<int64_t>(start, start + kWindows).size() == kWindows);
  }
}

TEST_CASE("windows that come back are trained before the others, each once in an epoch") {
  constexpr int64_t kWindows = 60;
  const Sampler sampler(DataOrder::kShuffled, 9, kWindows);
  WindowPool pool(50);
  const auto next = [&] { return sampler.draw({.pool = pool}, 0).number; };
  const auto window_of = [&](int64_t sequence) {
    return sampler.draw({.offset = sequence}, 0).number;
  };
  pool.give_back({7, 9});
  pool.give_back({20, 21});
  std::set<int64_t> rest;
  for (const int64_t sequence : {7, 8, 20, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59}) {
    CHECK(next() == window_of(sequence));
    CHECK(rest.insert(next()).second);
    pool.take(1);
  }
  CHECK(pool == WindowPool(kWindows));  // the epoch ends with all windows trained
  for (int64_t sequence = 0; sequence < 50; ++sequence) {
    if (sequence == 7 || sequence == 8 || sequence == 20) continue;
    CHECK(rest.insert(window_of(sequence)).second);
  }
  CHECK(rest.size() == kWindows);
}

TEST_CASE("the sequential order deals the windows out in turn") {
  constexpr int64_t kWindows = 11;
  const Sampler sampler(DataOrder::kSequential, 9, kWindows);
  for (int64_t place = 0; place < 3; ++place) {
    for (const int64_t before : {0, 4, 100}) {
      const RoundRange range{.pool = WindowPool(77),
                             .site_sequences = before,
                             .offset = 5,
                             .place = place,
                             .num_members = 3};
      for (int64_t k = 0; k < 20; ++k) {
        const int64_t sequence = (before + k) * 3 + place;
        CHECK(sampler.draw(range, k) == Draw{sequence % kWindows, sequence / kWindows});
      }
    }
  }
}

}  // namespace farstep
