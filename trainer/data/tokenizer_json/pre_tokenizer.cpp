#include "trainer/data/tokenizer_json/pre_tokenizer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/data/text/utf8.h"

namespace farstep {

namespace {

constexpr const char* kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Expressions in which no match goes from a letter over the space or newline behind it, and none
// that ends there depends on what follows: of GPT-2; Llama 3, GPT-4 and Qwen 2; GPT-4o; DeepSeek;
// and of digits.
constexpr std::string_view kCutByWords[] = {
    kGpt2,
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)",
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    "[!\"#$%&'()*+,\\-./"
    ":;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "
    "?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
    "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    R"(\p{N})",
    R"(\p{N}+)",
    R"(\p{N}{1,3})",
};

// Adds a part that is not empty.
void add_word(std::string_view word, std::vector<std::string_view>& words) {
  if (!word.empty()) words.push_back(word);
}

}  // namespace

PreTokenizer::PreTokenizer(const JsonValue& json) {
  if (!json.is_null()) add(json, true, 0);
}

bool PreTokenizer::prepends() const {
  return std::any_of(steps_.begin(), steps_.end(), [](const auto& step) {
    const auto* const metaspace = std::get_if<Metaspace>(&step);
    return std::holds_alternative<SpacePrefix>(step) ||
           (metaspace != nullptr && metaspace->prefix != PrefixOf::kNone);
  });
}

bool PreTokenizer::may_cut() const {
  if (by_bytes_) return may_cut_bytes();
  return std::ranges::all_of(steps_, [](const auto& step) {
    const auto* const split = std::get_if<Split>(&step);
    return split == nullptr || split->is_local;
  });
}

bool PreTokenizer::may_cut_bytes() const {
  bool cuts = false;  // at words, which digits alone do not
  for (const auto& step : steps_) {
    if (std::holds_alternative<SpacePrefix>(step)) continue;
    const auto* const split = std::get_if<Split>(&step);
    if (split == nullptr || split->behavior != Behavior::kIsolated || split->invert) return false;
    const auto* const known = std::find(std::begin(kCutByWords), std::end(kCutByWords),
                                        std::string_view(split->expression.pattern()));
    if (known == std::end(kCutByWords)) return false;
    cuts |= split->expression.pattern().find("\\s+") != std::string::npos;
  }
  return cuts;
}

void PreTokenizer::add(const JsonValue& json, bool is_last, int depth) {
  const auto type = json["type"].text();
  if (type == "Sequence") {
    const auto list = json["pretokenizers"];
    if (depth == kMostDepth) json.refuse("too many sequences in each other");
    for (std::size_t i = 0; i < list.size(); ++i) {
      add(list.at(i), is_last && i + 1 == list.size(), depth + 1);
    }
  } else if (type == "Split") {
    add_split(json);
  } else if (type == "Digits") {
    const bool single = json["individual_digits"].flag(false);
    steps_.emplace_back(
        Split{RegularExpression(single ? "\\p{N}" : "\\p{N}+"), Behavior::kIsolated, false, true});
  } else if (type == "Metaspace") {
    add_metaspace(json);
  } else if (type == "ByteLevel") {
    if (!is_last) json.refuse("ByteLevel is supported at the end of the sequence only");
    if (json["add_prefix_space"].flag(true)) steps_.emplace_back(SpacePrefix{});
    if (json["use_regex"].flag(true)) {
      steps_.emplace_back(Split{RegularExpression(kGpt2), Behavior::kIsolated, false, false});
    }
    by_bytes_ = true;
  } else {
    json.refuse(fmt::format("the pre-tokenizer {} is not supported", type));
  }
}

void PreTokenizer::add_split(const JsonValue& json) {
  constexpr std::array<std::string_view, 5> kBehaviors = {
      "Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"};
  const auto name = json["behavior"].text();
  const auto behavior = std::find(kBehaviors.begin(), kBehaviors.end(), name);
  if (behavior == kBehaviors.end()) {
    json["behavior"].refuse(fmt::format("{} is not supported", name));
  }
  const auto pattern = json["pattern"];
  const bool is_literal = pattern["Regex"].is_null();
  const auto text = pattern[is_literal ? "String" : "Regex"].text();
  try {
    steps_.emplace_back(
        Split{is_literal ? RegularExpression::literal(text) : RegularExpression(text),
              static_cast<Behavior>(behavior - kBehaviors.begin()), json["invert"].flag(false),
              is_literal && !text.empty() && text.size() == character_bytes(text[0])});
  } catch (const DataError& error) {
    pattern.refuse(error.what());
  }
}

void PreTokenizer::add_metaspace(const JsonValue& json) {
  auto prefix = json["add_prefix_space"].flag(true) ? PrefixOf::kAll : PrefixOf::kNone;
  if (const auto scheme = json["prepend_scheme"]; !scheme.is_null()) {
    const auto name = scheme.text();
    if (name != "always" && name != "first" && name != "never") {
      scheme.refuse(fmt::format("{} is not supported", name));
    }
    prefix = name == "always"  ? PrefixOf::kAll
             : name == "first" ? PrefixOf::kFirst
                               : PrefixOf::kNone;
  }
  const auto space = json["replacement"].text();
  if (space.empty()) json["replacement"].refuse("must not be empty");
  steps_.emplace_back(Metaspace{space, prefix, json["split"].flag(true)});
}

void PreTokenizer::split(std::string_view text, bool begins_text, Words& words) const {
  words.made.clear();
  words.words.assign(1, text);
  for (const auto& step : steps_) {
    std::swap(words.words, words.before);
    words.words.clear();
    for (std::size_t i = 0; i < words.before.size(); ++i) {
      const bool first = begins_text && i == 0;
      std::visit([&](const auto& each) { apply(each, words.before[i], first, words); }, step);
    }
  }
}

// Matches and what lies between them are the parts; the behaviour says which are joined.
void PreTokenizer::apply(const Split& step, std::string_view word, bool /*begins_text*/,
                         Words& words) {
  step.expression.find_all(word, words.matches);
  struct Part {
    std::size_t begin, end;
    bool matches;
  };
  std::size_t done = 0;
  if (step.behavior == Behavior::kIsolated) {
    for (const auto& match : words.matches) {
      add_word(word.substr(done, match.begin - done), words.words);
      add_word(word.substr(match.begin, match.end - match.begin), words.words);
      done = match.end;
    }
    return add_word(word.substr(done), words.words);
  }
  std::vector<Part> parts;
  for (const auto& match : words.matches) {
    if (done != match.begin) parts.push_back({done, match.begin, step.invert});
    parts.push_back({match.begin, match.end, !step.invert});
    done = match.end;
  }
  if (done != word.size()) parts.push_back({done, word.size(), step.invert});

  std::vector<Part> joined;
  const bool from_end = step.behavior == Behavior::kWithNext;
  if (from_end) std::reverse(parts.begin(), parts.end());
  bool before = false;  // whether the part before was a match
  for (const auto& part : parts) {
    const bool joins =
        step.behavior == Behavior::kContiguous ? part.matches == before : part.matches && !before;
    before = part.matches;
    if (step.behavior == Behavior::kRemoved) {
      if (!part.matches) joined.push_back(part);
    } else if (joins && !joined.empty()) {
      joined.back() = {std::min(joined.back().begin, part.begin),
                       std::max(joined.back().end, part.end), part.matches};
    } else {
      joined.push_back(part);
    }
  }
  if (from_end) std::reverse(joined.begin(), joined.end());
  for (const auto& part : joined) {
    add_word(word.substr(part.begin, part.end - part.begin), words.words);
  }
}

void PreTokenizer::apply(const SpacePrefix& /*step*/, std::string_view word, bool /*begins_text*/,
                         Words& words) {
  if (word.starts_with(' ')) return words.words.push_back(word);
  words.words.push_back(words.made.emplace_back(" " + std::string(word)));
}

void PreTokenizer::apply(const Metaspace& step, std::string_view word, bool begins_text,
                         Words& words) {
  auto& made = words.made.emplace_back();
  for (const char byte : word) {
    if (byte == ' ') {
      made += step.space;
    } else {
      made += byte;
    }
  }
  const bool wants =
      step.prefix == PrefixOf::kAll || (step.prefix == PrefixOf::kFirst && begins_text);
  if (wants && !made.starts_with(step.space)) made.insert(0, step.space);
  std::string_view rest = made;
  if (step.splits) {
    // Each space begins a word.
    for (auto next = rest.find(step.space, 1); next != std::string_view::npos;
         next = rest.find(step.space, 1)) {
      words.words.push_back(rest.substr(0, next));
      rest.remove_prefix(next);
    }
  }
  add_word(rest, words.words);
}

}  // namespace farstep
