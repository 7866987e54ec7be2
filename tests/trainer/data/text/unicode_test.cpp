#include "trainer/data/text/unicode.h"

#include "tests/support/catch.h"
#include "trainer/data/text/new_characters.h"
#include "trainer/data/text/utf8.h"

namespace farstep {

TEST_CASE("kinds of characters are those of Unicode") {
  for (const char32_t c : {U'a', U'\u00e9', U'\u0416', U'\u4e2d', U'\u01c5'}) CHECK(is_letter(c));
  for (const char32_t c : {U'1', U' ', U'_', U'\u0301', U'\u2167'}) CHECK_FALSE(is_letter(c));
  int spaces = 0;
  for (char32_t c = 0; c < 0x110000; ++c) spaces += is_white_space(c) ? 1 : 0;
  CHECK(spaces == 25);  // the characters with the property White_Space
  for (const char32_t c : {U'\t', U'\u0085', U'\u00a0', U'\u3000'}) CHECK(is_white_space(c));
  for (const char32_t c : {U'\u180e', U'\u200b', U'\ufeff'}) CHECK_FALSE(is_white_space(c));
  for (const char32_t c : {U'x', U'7', U'_', U'\u0301', U'\u2167', U'\u24b6', U'\u200d'}) {
    CHECK(is_word_character(c));
  }
  for (const char32_t c : {U'-', U' ', U'.', U'\u00bd', U'\u20ac'})
    CHECK_FALSE(is_word_character(c));
}

TEST_CASE("graphemes end where a reader sees an end") {
  const std::string kGraphemes[] = {"a",
                                    "e\u0301\u0327",
                                    "\r\n",
                                    "\u1100\u1161\u11a8",
                                    "\U0001F468\u200d\U0001F469\u200d\U0001F467",
                                    "\U0001F1F0\U0001F1F7",
                                    "\U0001F1EB\U0001F1F7",
                                    "\u0928\u093f",
                                    "z"};
  std::string text;
  for (const auto& grapheme : kGraphemes) text += grapheme;
  std::size_t begin = 0;
  for (const auto& grapheme : kGraphemes) {
    CHECK(text.substr(begin, grapheme_end(text, begin) - begin) == grapheme);
    begin += grapheme.size();
  }
  CHECK(grapheme_end(" \u0301", 0) == 3);
}

TEST_CASE("a text in a normal form") {
  // Values of Python's unicodedata.normalize().
  const std::string text = "e\u0301\u0327 \u00e9 \ufb01 \u212b \u1100\u1161";
  CHECK(normalized(text, NormalForm::kNfc) == "\u0229\u0301 \u00e9 \ufb01 \u00c5 \uac00");
  CHECK(normalized(text, NormalForm::kNfd) == "e\u0327\u0301 e\u0301 \ufb01 A\u030a \u1100\u1161");
  CHECK(normalized(text, NormalForm::kNfkc) == "\u0229\u0301 \u00e9 fi \u00c5 \uac00");
  CHECK(normalized(text, NormalForm::kNfkd) == "e\u0327\u0301 e\u0301 fi A\u030a \u1100\u1161");
  CHECK(normalized("", NormalForm::kNfc).empty());
  CHECK(normalized(std::string("a\0b", 3), NormalForm::kNfd) == std::string("a\0b", 3));
}

TEST_CASE("new characters become older ones of their length") {
  std::string buffer;
  const std::string old = "text \u4e2d \U0001f600";
  CHECK(with_known_characters(old, buffer).data() == old.data());
  const std::string text = "a\u1c89b\U00031350c\U0001fae9";
  const auto known = with_known_characters(text, buffer);
  CHECK(known == "a\u1e00b\U00020000c\U0001f600");
  CHECK(known.size() == text.size());
  CHECK(valid_utf8_bytes(known) == known.size());
}

}  // namespace farstep
