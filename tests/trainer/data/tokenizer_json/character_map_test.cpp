#include "trainer/data/tokenizer_json/character_map.h"

#include <map>

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

using Rules = std::map<std::string, std::string>;

// A table of these rules. Each node has its children in a block of 256 units of its own.
std::string table_of(const Rules& rules) {
  std::vector<uint32_t> units(1);
  std::string values;
  constexpr uint32_t kHasValue = 1 << 8, kIsFar = 1 << 9, kIsValue = 1U << 31;
  std::map<std::string, std::size_t> places = {{"", 0}};
  const auto block_of = [&](std::size_t place) {
    // In steps of 256, from the place itself on.
    auto block = units.size() / 256 * 256 + 256;
    units.resize(block + 256);
    block ^= place & 0xff;
    units[place] |= static_cast<uint32_t>((place ^ block) >> 8) << 10 | kIsFar;
    return block;
  };
  std::map<std::string, std::size_t> blocks;
  for (const auto& [text, value] : rules) {
    std::string prefix;
    for (const char letter : text) {
      if (!blocks.contains(prefix)) blocks[prefix] = block_of(places[prefix]);
      const auto byte = static_cast<unsigned char>(letter);
      const auto place = blocks[prefix] ^ byte;
      prefix += letter;
      if (places.emplace(prefix, place).second) units[place] = byte;
    }
    if (!blocks.contains(text)) blocks[text] = block_of(places[text]);
    units[places[text]] |= kHasValue;
    units[blocks[text]] = kIsValue | static_cast<uint32_t>(values.size());
    values += value + '\0';
  }
  const auto bytes = static_cast<uint32_t>(units.size() * sizeof(uint32_t));
  std::string table(reinterpret_cast<const char*>(&bytes), sizeof bytes);
  table.append(reinterpret_cast<const char*>(units.data()), bytes);
  return table + values;
}

}  // namespace

TEST_CASE("rules are found by graphemes, or the longest at each place") {
  const Rules rules = {{"\t", " "},           {"A", "a"},       {"AB", "ab!"},
                       {"e\u0301", "\u00e9"}, {"\ufb01", "fi"}, {"\u00ad", ""}};
  const CharacterMap map(table_of(rules));
  Rules found;
  map.for_each_rule([&](const std::string& text, std::string_view value) { found[text] = value; });
  CHECK(found == rules);
  for (const auto& [text, value] : rules) CHECK(map.by_longest_rules(text) == value);
  CHECK(map.by_longest_rules("xAAB\tcafe\u0301\ufb01\u00adz") == "xaab! caf\u00e9fiz");
  CHECK(map.by_graphemes("xAAB\tcafe\u0301\ufb01\u00adz") == "xaaB caf\u00e9fiz");
  // A grapheme that begins with a rule becomes its value alone; a long one is read by characters.
  CHECK(map.by_graphemes("A\u0301") == "a");
  CHECK(map.by_longest_rules("A\u0301") == "a\u0301");
  CHECK(map.by_graphemes("A\u0301\u0302\u0303") == "a\u0301\u0302\u0303");
  CHECK(map.by_graphemes("").empty());
  CHECK(map.by_graphemes("A\u0301", BoundedText(1)) == "a");
  CHECK_THROWS_AS(map.by_graphemes("A\u0301b", BoundedText(1)), DataError);
  CHECK(map.by_longest_rules("").empty());
}

TEST_CASE("a damaged table is refused, or has fewer rules") {
  const auto whole = table_of({{"A", "a"}, {"AB", "b"}});
  for (const std::size_t size : {0, 3, 4, 7, 100}) {
    CHECK_THROWS_AS(CharacterMap(whole.substr(0, size)), DataError);
  }
  CHECK_THROWS_AS(CharacterMap(whole + "\xff"), DataError);
  // Any unit may lead anywhere.
  for (std::size_t place = 4; place + 4 < whole.size(); ++place) {
    if (whole[place] == 0) continue;
    auto changed = whole;
    changed[place] = static_cast<char>(changed[place] ^ 0x55);
    try {
      const CharacterMap map(changed);
      static_cast<void>(map.by_graphemes("AB\u0301 xA") + map.by_longest_rules("AB\u0301 xA"));
      map.for_each_rule([](const std::string&, std::string_view) {});
    } catch (const DataError&) {
    }
  }
}

TEST_CASE("a table whose nodes go in a circle is refused") {
  // "A" is its own child.
  std::vector<uint32_t> units(512);
  units[0] = 256 << 10;
  units[256 ^ 'A'] = 'A' | static_cast<uint32_t>('A') << 10;
  const auto bytes = static_cast<uint32_t>(units.size() * sizeof(uint32_t));
  std::string table(reinterpret_cast<const char*>(&bytes), sizeof bytes);
  table.append(reinterpret_cast<const char*>(units.data()), bytes);
  const CharacterMap map(table);
  CHECK(map.by_longest_rules("AAA") == "AAA");
  CHECK_THROWS_WITH(map.for_each_rule([](const std::string&, std::string_view) {}),
                    Catch::Contains("no end"));
}

}  // namespace farstep
