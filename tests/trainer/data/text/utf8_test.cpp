#include "trainer/data/text/utf8.h"

#include "tests/support/catch.h"

namespace farstep {

TEST_CASE("every character is valid, and is read as it was written") {
  std::string all;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xd800 && c < 0xe000) continue;
    std::string bytes;
    append_character(bytes, c);
    REQUIRE(bytes.size() == character_bytes(bytes[0]));
    REQUIRE(character_at(bytes, 0) == c);
    REQUIRE(character_before("x" + bytes, 1 + bytes.size()) == 1);
    all += bytes;
  }
  CHECK(valid_utf8_bytes(all) == all.size());
  CHECK(with_replaced_bytes(all) == all);
}

TEST_CASE("what is invalid is found and replaced, a part at a time") {
  // Overlong forms, surrogates, beyond U+10FFFF, and characters that are cut off. The replacements
  // are those of Python's bytes.decode(errors="replace").
  const std::string mark = "\ufffd";
  struct Case {
    std::string text;
    std::size_t valid;
    std::string replaced;
  };
  const Case cases[] = {{"", 0, ""},
                        {"abc\xff", 3, "abc" + mark},
                        {"\xff\xff", 0, mark + mark},
                        {"\xc0\x80x", 0, mark + mark + "x"},
                        {"\xe0\x80\x80", 0, mark + mark + mark},
                        {"\xed\xa0\x80", 0, mark + mark + mark},
                        {"\xf4\x90\x80\x80", 0, mark + mark + mark + mark},
                        {"\xf0\x9f\x98", 0, mark},
                        {"\xf0\x9f\x98x", 0, mark + "x"},
                        {"long ascii, then \xe4\xbd", 17, "long ascii, then " + mark},
                        {"\xe4\xbd\xe4\xbd\xa0", 0, mark + "\u4f60"},
                        {"\x80", 0, mark}};
  for (const auto& row : cases) {
    INFO(row.replaced);
    CHECK(valid_utf8_bytes(row.text) == row.valid);
    CHECK(with_replaced_bytes(row.text) == row.replaced);
  }
}

}  // namespace farstep
