#include "trainer/data/mixture.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <numeric>

namespace farstep {

namespace {

double sum_of_weights(std::span<const SourceShare> sources) {
  double sum = 0;
  for (const auto& source : sources) sum += source.weight;
  return sum;
}

}  // namespace

// Every site computes the same: IEEE 754 rounds sums and quotients alike everywhere.
std::vector<int64_t> shares_of(int64_t total, std::span<const SourceShare> sources) {
  const double sum = sum_of_weights(sources);
  std::vector<int64_t> shares;
  std::vector<double> remainders;
  for (const auto& source : sources) {
    const double exact = static_cast<double>(total) * (source.weight / sum);
    shares.push_back(static_cast<int64_t>(exact));
    remainders.push_back(exact - std::floor(exact));
  }
  std::vector<std::size_t> order(sources.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return remainders[i]; });
  // One for some of the sources is left at most.
  int64_t left = total - std::accumulate(shares.begin(), shares.end(), int64_t{0});
  for (std::size_t i = 0; left > 0; i = (i + 1) % order.size(), --left) ++shares[order[i]];
  return shares;
}

int64_t most_without_repeats(std::span<const SourceShare> sources) {
  const double sum = sum_of_weights(sources);
  double most = std::numeric_limits<double>::infinity();
  for (const auto& source : sources) {
    most = std::min(most, static_cast<double>(source.size) / (source.weight / sum));
  }
  auto total = static_cast<int64_t>(most);
  // A rounding of doubles could make a share one larger than its source.
  const auto fits = [&](int64_t candidate) {
    const auto shares = shares_of(candidate, sources);
    for (std::size_t i = 0; i < shares.size(); ++i) {
      if (shares[i] > sources[i].size) return false;
    }
    return true;
  };
  while (total > 0 && !fits(total)) --total;
  return total;
}

}  // namespace farstep
