#include "trainer/data/mixture.h"

#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "tests/support/catch.h"
#include "trainer/base/error.h"
#include "trainer/data/sampler.h"

namespace farstep {

namespace {

using Sources = std::vector<SourceShare>;

double sum_of(const Sources& sources) {
  double sum = 0;
  for (const auto& source : sources) sum += source.weight;
  return sum;
}

const Sources kMixtures[] = {
    {{.size = 100, .weight = 0.3}, {.size = 100, .weight = 0.7}},
    {{.size = 7, .weight = 3}, {.size = 1000, .weight = 7}},
    {{.size = 1000, .weight = 1}, {.size = 1, .weight = 1}, {.size = 13, .weight = 1}},
    {{.size = 50, .weight = 0.001}, {.size = 50, .weight = 5}, {.size = 1, .weight = 0.2}},
    {{.size = 1, .weight = 1}, {.size = 1, .weight = 1}}};

// Which source a number belongs to, and which of its examples it is.
std::pair<std::size_t, int64_t> source_of(int64_t number, const Sources& sources) {
  std::size_t source = 0;
  while (number >= sources[source].size) number -= sources[source++].size;
  return {source, number};
}

int64_t all_of(const Sources& sources) {
  int64_t size = 0;
  for (const auto& source : sources) size += source.size;
  return size;
}

}  // namespace

TEST_CASE("shares are exact within one, and add up") {
  for (const auto& sources : kMixtures) {
    for (const int64_t total : {0, 1, 2, 9, 10, 1000, 123457}) {
      const auto shares = shares_of(total, sources);
      CHECK(std::accumulate(shares.begin(), shares.end(), int64_t{0}) == total);
      for (std::size_t i = 0; i < sources.size(); ++i) {
        const double exact = static_cast<double>(total) * sources[i].weight / sum_of(sources);
        CHECK(std::abs(static_cast<double>(shares[i]) - exact) < 1);
      }
    }
  }
  CHECK(shares_of(10, kMixtures[0]) == std::vector<int64_t>{3, 7});
}

TEST_CASE("the largest set without repeats is used up by one source") {
  CHECK(most_without_repeats(kMixtures[0]) == 142);
  CHECK(most_without_repeats(Sources{{.size = 12, .weight = 2}}) == 12);
  for (const auto& sources : kMixtures) {
    const auto most = most_without_repeats(sources);
    const auto shares = shares_of(most, sources);
    double limit = 1e9;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      CHECK(shares[i] <= sources[i].size);
      limit = std::min(limit,
                       static_cast<double>(sources[i].size) * sum_of(sources) / sources[i].weight);
    }
    CHECK(static_cast<double>(most) < limit + 1e-6);
    CHECK(static_cast<double>(most) > limit - 1 - 1e-6);
  }
}

TEST_CASE("an epoch of a mixture has of each source its share") {
  for (const auto& sources : kMixtures) {
    const Sampler sampler(DataOrder::kShuffled, 5, sources);
    const int64_t windows = all_of(sources);
    const auto shares = shares_of(windows, sources);
    for (const int64_t epoch : {0, 1, 2, 77}) {
      std::vector<int64_t> found(sources.size());
      for (int64_t k = 0; k < windows; ++k) {
        const auto draw = sampler.draw({.pool = WindowPool(epoch * windows)}, k);
        ++found[source_of(draw.number, sources).first];
      }
      CHECK(found == shares);
    }
  }
}

TEST_CASE("all windows of a source come equally often, in each pass in another order") {
  for (const auto& sources : kMixtures) {
    const Sampler sampler(DataOrder::kShuffled, 5, sources);
    // By source and pass: the windows of it.
    std::map<std::pair<std::size_t, int64_t>, std::vector<int64_t>> passes;
    for (int64_t k = 0; k < 6 * all_of(sources); ++k) {
      const auto draw = sampler.draw({}, k);
      const auto [source, window] = source_of(draw.number, sources);
      passes[{source, draw.epoch}].push_back(window);
    }
    for (const auto& [pass, windows] : passes) {
      const auto& [source, number] = pass;
      INFO("source " << source << " pass " << number);
      CHECK(std::set(windows.begin(), windows.end()).size() == windows.size());
      const bool is_last = !passes.contains({source, number + 1});
      if (!is_last) CHECK(std::ssize(windows) == sources[source].size);
      if (!is_last && number > 0 && windows.size() > 20) {
        CHECK((windows != passes.at({source, number - 1})));
      }
    }
  }
}

TEST_CASE("sites, pools and other sequences change nothing of a mixture's order") {
  const auto& sources = kMixtures[1];
  const Sampler sampler(DataOrder::kShuffled, 5, sources);
  const Sampler again(DataOrder::kShuffled, 5, sources), other(DataOrder::kShuffled, 6, sources);
  WindowPool pool(40);
  pool.give_back({10, 14});
  std::size_t equal = 0;
  for (int64_t k = 0; k < 200; ++k) {
    const int64_t sequence = pool.at(k);
    const RoundRange whole{.offset = sequence}, part{.pool = pool, .offset = k, .place = 2};
    CHECK(sampler.draw(part, 0) == again.draw(whole, 0));
    equal += sampler.draw(part, 0) == other.draw(part, 0) ? 1 : 0;
  }
  CHECK(equal < 20);
}

TEST_CASE("one source has the order of a plain run, whatever its weight") {
  const Sampler plain(DataOrder::kShuffled, 9, 101);
  const Sampler one(DataOrder::kShuffled, 9, Sources{{.size = 101, .weight = 0.2}});
  for (int64_t k = 0; k < 303; ++k) CHECK(plain.draw({}, k) == one.draw({}, k));
  CHECK_THROWS_AS(Sampler(DataOrder::kSequential, 9, kMixtures[0]), InternalError);
}

}  // namespace farstep
