#include "trainer/data/pieces/merges.h"

#include <random>

#include "tests/support/catch.h"

namespace farstep {

namespace {

struct Rule {
  int32_t left, right;
  PairTable::Merge merge;
};

// The definition: the lowest rank of all pairs first, and of equal ranks the leftmost.
std::vector<int32_t> merged(std::vector<int32_t> symbols, const std::vector<Rule>& rules) {
  while (true) {
    const Rule* best = nullptr;
    std::size_t place = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      for (const auto& rule : rules) {
        if (rule.left != symbols[i] || rule.right != symbols[i + 1]) continue;
        if (best == nullptr || rule.merge.rank < best->merge.rank) {
          best = &rule;
          place = i;
        }
      }
    }
    if (best == nullptr) return symbols;
    symbols[place] = best->merge.merged;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
}

}  // namespace

TEST_CASE("words of all lengths are merged by the definition") {
  std::mt19937 random(7);
  const auto draw = [&](int32_t below) {
    return static_cast<int32_t>(random() % static_cast<uint32_t>(below));
  };
  for (int vocabulary = 0; vocabulary < 20; ++vocabulary) {
    Merges merges;
    std::vector<Rule> rules;
    int32_t symbols = 4;
    for (int32_t rank = 0; rank < 40; ++rank) {
      const Rule rule{draw(symbols), draw(symbols), {rank / (1 + vocabulary % 2), symbols}};
      const bool known = std::any_of(rules.begin(), rules.end(), [&](const Rule& other) {
        return other.left == rule.left && other.right == rule.right;
      });
      if (known) continue;
      rules.push_back(rule);
      merges.set(rule.left, rule.right, rule.merge);
      ++symbols;
    }
    for (const std::size_t size : {0, 1, 2, 3, 17, 31, 32, 33, 34, 100, 300}) {
      std::vector<int32_t> word(size);
      for (auto& symbol : word) symbol = size % 2 == 0 ? draw(4) : draw(2);
      auto result = word;
      merges.apply(result);
      CHECK(result == merged(word, rules));
    }
  }
}

TEST_CASE("a million equal symbols are merged in no time") {
  Merges merges;
  for (int32_t i = 0; i < 10; ++i) merges.set(i, i, {i, i + 1});
  std::vector<int32_t> word(1 << 20, 0);
  merges.apply(word);
  CHECK(word == std::vector<int32_t>(1 << 10, 10));
}

}  // namespace farstep
