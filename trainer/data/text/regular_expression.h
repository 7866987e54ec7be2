// Regular expressions of tokenizers, over UTF-8. No other folder sees PCRE2.
//
// tokenizer.json has them in the syntax of Oniguruma, and means Unicode 16 by \p{...} and \s. They
// are translated; what PCRE2 would read in another way is refused. A const RegularExpression is
// thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace farstep {

struct TextRange {
  std::size_t begin = 0, end = 0;
};

class RegularExpression {
 public:
  // Compiles a pattern in Oniguruma's syntax. Throws DataError with the pattern for one that is
  // wrong, or has what is not supported.
  explicit RegularExpression(const std::string& pattern);
  // Compiles what finds `text` itself.
  static RegularExpression literal(const std::string& text);
  ~RegularExpression();
  RegularExpression(RegularExpression&&) noexcept;
  RegularExpression& operator=(RegularExpression&&) noexcept;

  // Replaces `matches` by all matches in a valid text, in order and without overlap. Throws
  // DataError for a pattern that takes too long for the text.
  void find_all(std::string_view text, std::vector<TextRange>& matches) const;

  // Returns the pattern as it was given.
  const std::string& pattern() const { return pattern_; }

 private:
  struct Code;
  RegularExpression(std::string pattern, const std::string& translated, bool is_literal);

  std::string pattern_;
  std::unique_ptr<Code> code_;
};

}  // namespace farstep
