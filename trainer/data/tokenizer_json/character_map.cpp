// The table is a tree of bytes in an array, as the library Darts-clone lays it out. A unit of 32
// bits has a node's byte (0 to 7, and 31, which is set in values), whether a rule ends there (8),
// and how far its children are (from 10 on, in steps of 256 if bit 9 is set). Places are combined
// by exclusive or.
#include "trainer/data/tokenizer_json/character_map.h"

#include <bit>
#include <cstring>

#include "trainer/base/error.h"
#include "trainer/data/text/unicode.h"
#include "trainer/data/text/utf8.h"

namespace farstep {

namespace {

static_assert(std::endian::native == std::endian::little, "units are copied as they lie");

constexpr std::size_t kSizeBytes = sizeof(uint32_t);
constexpr uint32_t kByteBits = 0x800000ff, kValueBits = 0x7fffffff;
constexpr std::size_t kMostGraphemeBytes = 5;  // longer ones are changed by characters
// Ends of keys share nodes, so a damaged table could have keys without end.
constexpr std::size_t kMostKeyBytes = 128, kMostNodes = 8'000'000;

uint32_t unit_at(std::string_view bytes, std::size_t place) {
  uint32_t unit = 0;
  std::memcpy(&unit, bytes.data() + place, sizeof unit);
  return unit;
}

[[noreturn]] void refuse_table(const char* what) {
  throw DataError(fmt::format("the table of characters is damaged: {}", what));
}

}  // namespace

CharacterMap::CharacterMap(std::string_view content) {
  if (content.size() < kSizeBytes) refuse_table("it is too short");
  const std::size_t bytes = unit_at(content, 0);
  if (bytes == 0 || bytes % sizeof(uint32_t) != 0 || bytes > content.size() - kSizeBytes) {
    refuse_table("its size is wrong");
  }
  units_.resize(bytes / sizeof(uint32_t));
  std::memcpy(units_.data(), content.data() + kSizeBytes, bytes);
  values_ = content.substr(kSizeBytes + bytes);
  if (valid_utf8_bytes(values_) != values_.size()) refuse_table("it has values that are no text");
}

std::size_t CharacterMap::children_of(std::size_t place) const {
  const uint32_t unit = units_[place];
  return place ^ (static_cast<std::size_t>(unit >> 10) << ((unit >> 9 & 1) * 8));
}

std::optional<std::size_t> CharacterMap::next(std::size_t place, unsigned char byte) const {
  const auto child = children_of(place) ^ byte;
  // A zero would lead to a value.
  const bool is_child =
      byte != 0 && child < units_.size() && (units_[child] & kByteBits) == uint32_t{byte};
  return is_child ? std::optional(child) : std::nullopt;
}

std::optional<std::string_view> CharacterMap::value_at(std::size_t place) const {
  const auto leaf = children_of(place);
  if ((units_[place] >> 8 & 1) == 0 || leaf >= units_.size()) return std::nullopt;
  const std::size_t begin = units_[leaf] & kValueBits;
  if (begin > values_.size()) return std::nullopt;
  const auto rest = std::string_view(values_).substr(begin);
  // A value within a character would make text that is none.
  if (!rest.empty() && (rest[0] & 0xc0) == 0x80) return std::nullopt;
  return rest.substr(0, rest.find('\0'));
}

std::optional<CharacterMap::Match> CharacterMap::match(std::string_view text, bool longest) const {
  std::optional<Match> found;
  std::size_t place = 0;
  for (std::size_t bytes = 0; bytes < text.size();) {
    const auto child = next(place, static_cast<unsigned char>(text[bytes++]));
    if (!child) break;
    place = *child;
    const bool ends_character = bytes == text.size() || (text[bytes] & 0xc0) != 0x80;
    const auto value = ends_character ? value_at(place) : std::nullopt;
    if (value) found = {bytes, *value};
    if (found && !longest) break;
  }
  return found;
}

std::string CharacterMap::by_graphemes(std::string_view text, BoundedText result) const {
  for (std::size_t begin = 0, end; begin < text.size(); begin = end) {
    end = grapheme_end(text, begin);
    const auto grapheme = text.substr(begin, end - begin);
    const auto whole =
        grapheme.size() <= kMostGraphemeBytes ? match(grapheme, /*longest=*/false) : std::nullopt;
    if (whole) {
      result.add(whole->value);
      continue;
    }
    for (std::size_t place = 0, bytes; place < grapheme.size(); place += bytes) {
      bytes = character_bytes(grapheme[place]);
      const auto character = grapheme.substr(place, bytes);
      const auto found = match(character, /*longest=*/false);
      result.add(found ? found->value : character);
    }
  }
  return result.take();
}

std::string CharacterMap::by_longest_rules(std::string_view text) const {
  std::string result;
  while (!text.empty()) {
    const auto character = text.substr(0, character_bytes(text[0]));
    const auto found = match(text, /*longest=*/true).value_or(Match{character.size(), character});
    result += found.value;
    text.remove_prefix(found.bytes);
  }
  return result;
}

void CharacterMap::for_each_rule(
    const std::function<void(const std::string& text, std::string_view value)>& take) const {
  struct Step {
    std::size_t place;
    unsigned byte;  // the next one to follow
  };
  std::vector<Step> path = {{0, 1}};
  std::string text;
  std::size_t nodes = 0;
  while (!path.empty()) {
    auto& step = path.back();
    if (step.byte == 256) {
      path.pop_back();
      if (!text.empty()) text.pop_back();
      continue;
    }
    const auto byte = static_cast<unsigned char>(step.byte++);
    const auto child = next(step.place, byte);
    if (!child) continue;
    if (++nodes > kMostNodes || text.size() == kMostKeyBytes) refuse_table("it has no end");
    text += static_cast<char>(byte);
    if (const auto value = value_at(*child)) take(text, *value);
    path.push_back({*child, 1});
  }
}

}  // namespace farstep
