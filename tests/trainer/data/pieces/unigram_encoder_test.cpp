#include "trainer/data/pieces/unigram_encoder.h"

#include <map>
#include <random>

#include "tests/support/catch.h"
#include "trainer/base/error.h"
#include "trainer/data/text/utf8.h"

namespace farstep {

namespace {

using Ids = std::vector<int32_t>;
using Scores = std::map<std::string, double>;

constexpr double kUnknownScore = -20;
constexpr int32_t kUnknown = 99;

UnigramEncoder encoder_for(const Scores& scores) {
  UnigramEncoder encoder;
  int32_t id = 0;
  for (const auto& [piece, score] : scores) encoder.add_piece(piece, id++, score);
  encoder.set_unknown(kUnknownScore, kUnknown);
  return encoder;
}

Ids encoded(const UnigramEncoder& encoder, const std::string& text) {
  WordCache cache;
  Ids ids;
  encoder.encode(text, cache, ids);
  return ids;
}

// The best sum of all ways to cut the text, one after the other.
double best_of_all(const Scores& scores, const std::string& text) {
  if (text.empty()) return 0;
  const auto first = text.substr(0, character_bytes(text[0]));
  double best = -1e9;
  if (!scores.contains(first))
    best = kUnknownScore + best_of_all(scores, text.substr(first.size()));
  for (const auto& [piece, score] : scores) {
    if (!text.starts_with(piece)) continue;
    best = std::max(best, score + best_of_all(scores, text.substr(piece.size())));
  }
  return best;
}

}  // namespace

TEST_CASE("of all ways to cut a text the likeliest is found") {
  // Sums of these are exact, and no two pieces have one score.
  const Scores scores = {{"a", -4},        {"b", -4.5},      {"ab", -6.25},         {"aab", -7},
                         {"ba", -8.125},   {"\u00e9", -5},   {"a\u00e9b", -9.0625}, {"abab", -11.5},
                         {"bb\u00e9", -8}, {"x\u00e9y", -30}};
  const std::string kParts[] = {"a", "b", "\u00e9", "ab", "x", "\U0001F600"};
  const auto encoder = encoder_for(scores);
  std::vector<double> score_of;
  for (const auto& [piece, score] : scores) score_of.push_back(score);
  std::mt19937 random(3);
  for (int i = 0; i < 500; ++i) {
    std::string text;
    for (auto parts = random() % 7; parts > 0; --parts)
      text += kParts[random() % std::size(kParts)];
    INFO(text);
    // An unknown character alone, so that its id tells how many there are.
    UnigramEncoder apart = encoder_for(scores);
    std::array<int32_t, 256> bytes{};
    for (int32_t byte = 0; byte < 256; ++byte) bytes[static_cast<std::size_t>(byte)] = 1000 + byte;
    apart.set_bytes(bytes);
    double sum = 0;
    std::string unknown;
    for (const auto id : encoded(apart, text)) {
      if (id < 1000) {
        sum += score_of.at(static_cast<std::size_t>(id));
      } else {
        unknown += static_cast<char>(id - 1000);
        // A lead byte.
        if ((id - 1000) < 0x80 || (id - 1000) >= 0xc0) sum += kUnknownScore;
      }
    }
    CHECK(sum == best_of_all(scores, text));
    CHECK(valid_utf8_bytes(unknown) == unknown.size());
  }
  CHECK(encoded(encoder, "").empty());
}

TEST_CASE("unknown neighbours share an id, and what is left out is cut in other ways") {
  auto encoder = encoder_for({{"a", -1}, {"b", -1}, {"ab", -1.5}});
  CHECK(encoded(encoder, "xyab\u4e00z") == Ids{kUnknown, 1, kUnknown});
  CHECK(encoder.may_cut(U'b', U'a'));
  CHECK_FALSE(encoder.may_cut(U'a', U'b'));
  CHECK_FALSE(encoder.may_cut(U'a', U'x'));  // it may have an unknown one behind it
  encoder.remove_piece("ab");
  encoder.remove_piece("abc");  // it has none
  CHECK(encoded(encoder, "ab") == Ids{0, 2});
  UnigramEncoder without;
  without.add_piece("a", 0, -1);
  CHECK_THROWS_WITH(encoded(without, "ab"), Catch::Contains("U+0062"));
}

TEST_CASE("a long text has the ids of its parts") {
  const auto encoder = encoder_for({{"a", -1}, {"aa", -1.75}, {"_", -2}, {"_a", -2.5}});
  std::string text;
  Ids expected;
  for (int i = 0; i < 3000; ++i) {
    const auto word = "_" + std::string(static_cast<std::size_t>(i % 90), 'a');
    text += word;
    const auto ids = encoded(encoder, word);
    expected.insert(expected.end(), ids.begin(), ids.end());
  }
  CHECK((encoded(encoder, text) == expected));
}

}  // namespace farstep
