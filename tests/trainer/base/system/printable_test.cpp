#include "trainer/base/system/printable.h"

#include <string>
#include <utility>
#include <vector>

#include "tests/support/catch.h"

namespace farstep {

TEST_CASE("text of others becomes printable ASCII of limited length") {
  CHECK(printable("", 10).empty());
  CHECK(printable("plain ~text", 11) == "plain ~text");
  CHECK(printable("a\x1b[2J\n\xff", 40) == "a\\x1b[2J\\x0a\\xff");
  CHECK(printable("0123456789a", 10) == "0123456...");
}

TEST_CASE("text of others becomes one line that obeys nothing and keeps its letters") {
  CHECK(one_line("").empty());
  const std::string plain = "Zürich, 서울, \U0001f600 ~";
  CHECK(one_line(plain) == plain);
  CHECK(is_one_line(plain));
  for (const auto& [text, shown] : std::vector<std::pair<std::string, std::string>>{
           {"a\x1b]0;owned\x07", "a\\x1b]0;owned\\x07"},
           {"one\r\ntwo\t", "one\\x0d two\\x09"},
           {std::string("\0", 1), "\\x00"},
           {"\x7f", "\\x7f"},
           {"\xc2\x9b[31m", "\\xc2\\x9b[31m"},           // a terminal's escape in one character
           {"\u202egnp.exe", "\\xe2\\x80\\xaegnp.exe"},  // from right to left
           {"\u2028", "\\xe2\\x80\\xa8"},
           {"\u2067\ufeff", "\\xe2\\x81\\xa7\\xef\\xbb\\xbf"},
           // No UTF-8: a byte alone, the rest of a character, too long, half a pair, too high.
           {"\xff", "\\xff"},
           {"\xe2\x82", "\\xe2\\x82"},
           {"\xc0\x80", "\\xc0\\x80"},
           {"\xe0\x9f\xbf", "\\xe0\\x9f\\xbf"},
           {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
           {"\xf0\x8f\xbf\xbf", "\\xf0\\x8f\\xbf\\xbf"},
           {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"}}) {
    CAPTURE(shown);
    CHECK(one_line(text) == shown);
    CHECK_FALSE(is_one_line(text));
  }
}

TEST_CASE("a line of others is cut between characters") {
  CHECK(one_line("0123456789", 10) == "0123456789");
  CHECK(one_line("0123456789a", 10) == "0123456...");
  CHECK(one_line("012345üüü", 10) == "012345...");  // of two bytes each
  CHECK(one_line("012345\t\t", 10) == "012345...");
  CHECK(one_line("abc", 2) == "..");
  CHECK(one_line("abc", 0).empty());
}

}  // namespace farstep
