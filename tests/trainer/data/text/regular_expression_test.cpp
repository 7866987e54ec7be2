#include "trainer/data/text/regular_expression.h"

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

std::vector<std::string> found(const RegularExpression& expression, const std::string& text) {
  std::vector<TextRange> matches;
  expression.find_all(text, matches);
  std::vector<std::string> texts;
  for (const auto& match : matches)
    texts.push_back(text.substr(match.begin, match.end - match.begin));
  return texts;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("classes are those of Unicode") {
  CHECK(found(RegularExpression(R"(\p{L}+)"), "ab \u0416\u4e2d 12\u1c89") ==
        Texts{"ab", "\u0416\u4e2d", "\u1c89"});
  CHECK(found(RegularExpression(R"(\d)"), "1\u0663\u2167x") == Texts{"1", "\u0663"});
  CHECK(found(RegularExpression(R"(\s+)"), "a\u0085\u00a0b\u180ec\u3000") ==
        Texts{"\u0085\u00a0", "\u3000"});
  CHECK(found(RegularExpression(R"([^\s\p{L}]+)"), "a\u180e! b") == Texts{"\u180e!"});
  CHECK(found(RegularExpression(R"(\S+)"), "one two") == Texts{"one", "two"});
  CHECK(found(RegularExpression(R"([\u4e00-\u9fa5]+|\x41)"), "A\u4e2dB") == Texts{"A", "\u4e2d"});
}

TEST_CASE("a case is folded as Unicode has it") {
  CHECK(found(RegularExpression("(?i:'s|'k)"), "'s 'S '\u017f '\u212a") ==
        Texts{"'s", "'S", "'\u017f", "'\u212a"});
}

TEST_CASE("an empty match counts where no match ended") {
  // As Oniguruma's iterator has it: there is none behind "x", and one before "a".
  CHECK(found(RegularExpression("x*"), "xaxx") == Texts{"x", "xx"});
  CHECK(found(RegularExpression("x*"), "ab") == Texts{"", "", ""});
  CHECK(found(RegularExpression("x*"), "") == Texts{""});
  CHECK(found(RegularExpression("(?=b)"), "ab\u00e9b") == Texts{"", ""});
}

TEST_CASE("the ends of a text are not those of its lines") {
  CHECK(found(RegularExpression(R"(\Aa|b\z)"), "a\na b\nb") == Texts{"a", "b"});
  CHECK(found(RegularExpression("^a|b$"), "a\na b\nb") == Texts{"a", "a", "b", "b"});
}

TEST_CASE("a text is found as it is") {
  CHECK(found(RegularExpression::literal("a.b*"), "axb* a.b* a.b*") == Texts{"a.b*", "a.b*"});
}

TEST_CASE("what PCRE2 reads in another way is refused by name") {
  for (const auto* pattern :
       {R"(\h)",  R"(\w)",     R"(\bx)", R"(\1)", R"([[a]b])",       "[a&&b]",     "(?i)a",
        "(?m:a)", "(*ACCEPT)", "a{2}+",  "a{,2}", R"([\S])",         "(?<name>a)", R"(\Ka)",
        "[]a]",   R"([\A])",   "[a",     "\\",    R"(\p{Nonsense})", "(a",         "\xff"}) {
    INFO(pattern);
    CHECK_THROWS_AS(RegularExpression(pattern), DataError);
  }
  CHECK_THROWS_WITH(RegularExpression(R"(a\hb)"), Catch::Contains("'a\\hb' has \\h"));
}

TEST_CASE("long runs neither end the stack nor take long") {
  const RegularExpression expression(R"(\p{L}+|\s*[\r\n]+|\s+(?!\S)|\s+|(?:ab)+)");
  for (const char byte : {' ', '\n', 'a', '!'}) {
    CHECK(found(expression, std::string(1'000'000, byte) + "x").size() <= 3);
  }
}

TEST_CASE("an expression without end is refused for the text") {
  const RegularExpression expression("(?:x+x+)+[yz]");
  std::vector<TextRange> matches;
  CHECK_THROWS_AS(expression.find_all(std::string(5000, 'x'), matches), DataError);
}

}  // namespace farstep
