#include "trainer/data/tokenizer_json/text_normalizer.h"

#include <algorithm>

#include "trainer/base/error.h"
#include "trainer/data/text/bounded_text.h"
#include "trainer/data/text/utf8.h"
#include "trainer/data/tokenizer_json/base64.h"

namespace farstep {

namespace {

// No text of people grows so much: NFKC, which makes most of a character, makes 11 times its bytes.
// A file of a few kilobytes could ask for any memory otherwise, by steps that each double a text.
constexpr std::size_t kMostGrowth = 32;
constexpr std::size_t kMostBeyond = 64;  // bytes, also of a short text

std::string replaced(std::string_view text, const std::string& from, const std::string& to,
                     BoundedText result) {
  std::size_t begin = 0;
  for (auto found = text.find(from); found != text.npos; found = text.find(from, begin)) {
    result.add(text.substr(begin, found - begin));
    result.add(to);
    begin = found + from.size();
  }
  result.add(text.substr(begin));
  return result.take();
}

std::string replaced(std::string_view text, const RegularExpression& from, const std::string& to,
                     BoundedText result) {
  std::vector<TextRange> matches;
  from.find_all(text, matches);
  std::size_t done = 0;
  for (const auto& match : matches) {
    result.add(text.substr(done, match.begin - done));
    result.add(to);
    done = match.end;
  }
  result.add(text.substr(done));
  return result.take();
}

std::string joined(std::string_view before, std::string_view text, BoundedText result) {
  result.add(before);
  result.add(text);
  return result.take();
}

// Returns the text without white space at its ends.
std::string stripped(std::string_view text, bool left, bool right) {
  while (left && !text.empty() && is_white_space(character_at(text, 0))) {
    text.remove_prefix(character_bytes(text[0]));
  }
  while (right && !text.empty()) {
    const auto last = character_before(text, text.size());
    if (!is_white_space(character_at(text, last))) break;
    text = text.substr(0, last);
  }
  return std::string(text);
}

}  // namespace

TextNormalizer::TextNormalizer(const JsonValue& json) {
  if (!json.is_null()) add(json, 0);
}

void TextNormalizer::add(const JsonValue& json, int depth) {
  const auto type = json["type"].text();
  const auto names = enum_names(NormalForm{});
  const auto form = std::find(names.begin(), names.end(), type);
  if (type == "Sequence") {
    const auto list = json["normalizers"];
    if (depth == kMostDepth) json.refuse("too many sequences in each other");
    for (std::size_t i = 0; i < list.size(); ++i) add(list.at(i), depth + 1);
  } else if (form != names.end()) {
    steps_.emplace_back(static_cast<NormalForm>(form - names.begin()));
  } else if (type == "Prepend") {
    steps_.emplace_back(Prepend{json["prepend"].text()});
  } else if (type == "Replace") {
    add_replace(json);
  } else if (type == "Strip") {
    steps_.emplace_back(Strip{json["strip_left"].flag(true), json["strip_right"].flag(true)});
  } else if (type == "Precompiled") {
    const auto table = json["precompiled_charsmap"];
    const auto bytes = base64_bytes(table.text());
    if (!bytes) table.refuse("must be Base64");
    try {
      steps_.emplace_back(CharacterMap(*bytes));
    } catch (const DataError& error) {
      table.refuse(error.what());
    }
  } else {
    json.refuse(fmt::format("the normalizer {} is not supported", type));
  }
}

void TextNormalizer::add_replace(const JsonValue& json) {
  const auto pattern = json["pattern"];
  const auto to = json["content"].text();
  if (!pattern["String"].is_null()) {
    const auto from = pattern["String"].text();
    if (from.empty()) pattern.refuse("an empty text cannot be replaced");
    steps_.emplace_back(Replace{from, to});
    return;
  }
  const auto expression = pattern["Regex"].text();
  try {
    steps_.emplace_back(ReplaceMatches{RegularExpression(expression), to});
  } catch (const DataError& error) {
    pattern.refuse(error.what());
  }
}

// Nothing is joined with a space or newline behind it in a normal form. That need not hold for what
// an earlier step has put in their place.
bool TextNormalizer::may_cut() const {
  bool keeps_space = true;
  return std::all_of(steps_.begin(), steps_.end(), [&](const auto& step) {
    if (std::holds_alternative<NormalForm>(step)) return keeps_space;
    const auto* const replace = std::get_if<Replace>(&step);
    if (replace == nullptr) return std::holds_alternative<Prepend>(step);
    keeps_space &= replace->from != " " && replace->from != "\n";
    return replace->from.size() == character_bytes(replace->from[0]);
  });
}

bool TextNormalizer::prepends() const {
  return std::any_of(steps_.begin(), steps_.end(),
                     [](const auto& step) { return std::holds_alternative<Prepend>(step); });
}

// The bound is of the first text: normal forms and the map of a step multiply by a constant.
std::string TextNormalizer::operator()(std::string_view text, bool begins_text) const {
  const BoundedText bound(kMostGrowth * text.size() + kMostBeyond);
  std::string result(text);
  for (const auto& step : steps_) {
    if (const auto* const form = std::get_if<NormalForm>(&step)) {
      result = joined("", normalized(result, *form), bound);
    } else if (const auto* const replace = std::get_if<Replace>(&step)) {
      result = replaced(result, replace->from, replace->to, bound);
    } else if (const auto* const replace_matches = std::get_if<ReplaceMatches>(&step)) {
      result = replaced(result, replace_matches->expression, replace_matches->to, bound);
    } else if (const auto* const strip = std::get_if<Strip>(&step)) {
      result = stripped(result, strip->left, strip->right);
    } else if (const auto* const map = std::get_if<CharacterMap>(&step)) {
      result = map->by_graphemes(result, bound);
    } else if (begins_text && !result.empty()) {
      result = joined(std::get<Prepend>(step).text, result, bound);
    }
  }
  return result;
}

}  // namespace farstep
