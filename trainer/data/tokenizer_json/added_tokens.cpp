#include "trainer/data/tokenizer_json/added_tokens.h"

#include <algorithm>

#include "trainer/data/text/unicode.h"
#include "trainer/data/text/utf8.h"

namespace farstep {

namespace {

bool ends_with_word(std::string_view text) {
  return !text.empty() &&
         is_word_character(character_at(text, character_before(text, text.size())));
}

bool starts_with_word(std::string_view text) {
  return !text.empty() && is_word_character(character_at(text, 0));
}

// Returns where the white space at the end of text.substr(0, end) begins.
std::size_t begin_of_space(std::string_view text, std::size_t end) {
  while (end > 0) {
    const auto before = character_before(text, end);
    if (!is_white_space(character_at(text, before))) break;
    end = before;
  }
  return end;
}

// Returns where the white space from `begin` on ends.
std::size_t end_of_space(std::string_view text, std::size_t begin) {
  while (begin < text.size() && is_white_space(character_at(text, begin))) {
    begin += character_bytes(text[begin]);
  }
  return begin;
}

// Whether no match of the token, which is looked for as `text`, changes where another text is cut
// between a letter and one of `cuts`.
bool allows(const AddedToken& token, std::string_view text, const std::vector<std::string>& cuts) {
  const auto begins_with_cut = [&](std::string_view rest) {
    return std::ranges::any_of(
        cuts, [&](const auto& cut) { return !cut.empty() && rest.starts_with(cut); });
  };
  if (token.rstrip && ends_with_word(text)) return false;
  if (token.single_word && (begins_with_cut(text) || std::ranges::any_of(cuts, starts_with_word))) {
    return false;
  }
  for (std::size_t place = 1; place < text.size(); ++place) {
    if (begins_with_cut(text.substr(place)) &&
        is_letter(character_at(text, character_before(text, place)))) {
      return false;
    }
  }
  return true;
}

}  // namespace

AddedTokens::AddedTokens(const JsonValue& json, const TextNormalizer& normalizer) {
  if (json.is_null()) return;
  const std::vector<std::string> cuts = {" ", "\n"};
  const std::vector<std::string> normal_cuts = {normalizer(" ", false), normalizer("\n", false)};
  for (std::size_t i = 0; i < json.size(); ++i) {
    const auto entry = json.at(i);
    AddedToken token;
    token.id = entry["id"].id();
    token.content = entry["content"].text();
    token.single_word = entry["single_word"].flag(false);
    token.lstrip = entry["lstrip"].flag(false);
    token.rstrip = entry["rstrip"].flag(false);
    token.special = entry["special"].flag(false);
    token.normalized = entry["normalized"].flag(!token.special);
    if (token.content.empty()) continue;  // it can be nowhere
    const auto index = static_cast<int32_t>(tokens_.size());
    if (token.normalized) {
      const auto content = normalizer(token.content, true);
      if (!content.empty()) normalized_.add(content, index);
      may_cut_ &= allows(token, content, normal_cuts);
    } else {
      as_it_is_.add(token.content, index);
      may_cut_ &= allows(token, token.content, cuts);
    }
    tokens_.push_back(std::move(token));
  }
}

void AddedTokens::leave_special() {
  for (auto& token : tokens_) token.is_left |= token.special;
}

void AddedTokens::leave(int32_t id) {
  for (auto& token : tokens_) token.is_left |= token.id == id;
}

// A token that is refused here, as a part of a word say, still hides others that begin within it.
// Hugging Face's library does the same.
int64_t AddedTokens::split(std::string_view text, bool normalized,
                           std::vector<TextPart>& parts) const {
  parts.clear();
  int64_t left = 0;
  const auto& literals = normalized ? normalized_ : as_it_is_;
  std::size_t done = 0, from = 0;
  while (const auto match = literals.next(text, from)) {
    from = match->end;
    const auto& token = tokens_[static_cast<std::size_t>(match->value)];
    if (token.is_left) {
      ++left;
      continue;
    }
    auto begin = match->begin, end = match->end;
    if (token.single_word &&
        (ends_with_word(text.substr(0, begin)) || starts_with_word(text.substr(end)))) {
      continue;
    }
    if (token.lstrip) begin = std::max(begin_of_space(text, begin), done);
    if (token.rstrip) end = end_of_space(text, end);
    if (done < begin) parts.push_back({text.substr(done, begin - done)});
    parts.push_back({text.substr(begin, end - begin), token.id});
    done = end;
  }
  if (done < text.size()) parts.push_back({text.substr(done)});
  return left;
}

}  // namespace farstep
