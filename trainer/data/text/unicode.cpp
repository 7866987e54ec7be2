#include "trainer/data/text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "trainer/base/error.h"
#include "trainer/data/text/utf8.h"

namespace farstep {

namespace {

utf8proc_option_t options_of(NormalForm form) {
  int options = UTF8PROC_STABLE;
  options |=
      form == NormalForm::kNfc || form == NormalForm::kNfkc ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == NormalForm::kNfkc || form == NormalForm::kNfkd) options |= UTF8PROC_COMPAT;
  return static_cast<utf8proc_option_t>(options);
}

bool is_ascii(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char byte) { return (byte & 0x80) != 0; });
}

utf8proc_category_t category_of(char32_t character) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(character));
}

}  // namespace

bool is_letter(char32_t character) {
  const auto category = category_of(character);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool is_white_space(char32_t character) {
  return (character >= 0x09 && character <= 0x0d) || character == 0x85 ||
         (category_of(character) >= UTF8PROC_CATEGORY_ZS &&
          category_of(character) <= UTF8PROC_CATEGORY_ZP);
}

bool is_word_character(char32_t character) {
  switch (category_of(character)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      // Joiners, and letters in circles and squares, which are symbols and alphabetic too.
      return character == 0x200c || character == 0x200d ||
             (character >= 0x24b6 && character <= 0x24e9) ||
             (character >= 0x1f130 && character <= 0x1f149) ||
             (character >= 0x1f150 && character <= 0x1f169) ||
             (character >= 0x1f170 && character <= 0x1f189);
  }
}

std::size_t grapheme_end(std::string_view text, std::size_t begin) {
  utf8proc_int32_t state = 0;
  auto before = character_at(text, begin);
  auto end = begin + character_bytes(text[begin]);
  while (end < text.size()) {
    const char32_t after = character_at(text, end);
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(before),
                                         static_cast<utf8proc_int32_t>(after), &state)) {
      break;
    }
    end += character_bytes(text[end]);
    before = after;
  }
  return end;
}

std::string normalized(std::string_view text, NormalForm form) {
  if (is_ascii(text)) return std::string(text);  // all forms leave it as it is
  utf8proc_uint8_t* memory = nullptr;
  const auto bytes =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &memory, options_of(form));
  const std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> owner(memory, &std::free);
  FARSTEP_CHECK(bytes >= 0, "utf8proc: {}", utf8proc_errmsg(bytes));
  return {reinterpret_cast<const char*>(memory), static_cast<std::size_t>(bytes)};
}

}  // namespace farstep
