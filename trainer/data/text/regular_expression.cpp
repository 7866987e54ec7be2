// PCRE2 compiles a pattern to machine code, which finds the words of a text ten times as fast as
// Oniguruma does.
#include "trainer/data/text/regular_expression.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/data/text/new_characters.h"
#include "trainer/data/text/utf8.h"

namespace farstep {

namespace {

// White space by Unicode. PCRE2's own \s has U+180E too.
constexpr std::string_view kWhiteSpace =
    "\\x{9}-\\x{d} \\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}"
    "\\x{3000}";
// Memory for the machine code's backtracking; it begins small and grows when it is needed.
constexpr std::size_t kLeastStackBytes = 32 << 10, kMostStackBytes = 64 << 20;

// Copies a pattern piece by piece, each checked and translated.
class Translation {
 public:
  explicit Translation(const std::string& pattern) : in_(pattern) {}

  std::string operator()() {
    while (place_ < in_.size()) {
      if (in_class_) {
        class_member();
      } else {
        outside_class();
      }
    }
    if (in_class_) refuse("a class without its end");
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw DataError(
        fmt::format("the regular expression '{}' has {}, which is not supported", in_, what));
  }
  bool at(std::string_view text) const { return in_.compare(place_, text.size(), text) == 0; }
  void copy(std::size_t bytes) {
    out_ += in_.substr(place_, bytes);
    place_ += bytes;
  }

  void outside_class() {
    switch (in_[place_]) {
      case '\\':
        return escape();
      case '[':
        return begin_class();
      case '(':
        return group();
      case '{':
        return repeat();
      default:
        return copy(1);
    }
  }

  void begin_class() {
    in_class_ = true;
    copy(1);
    if (at("^")) copy(1);
    if (at("]")) refuse("a class that begins with ]");
  }

  void class_member() {
    if (at("]")) {
      in_class_ = false;
      copy(1);
    } else if (at("[")) {
      refuse("a class in a class");
    } else if (at("&&")) {
      refuse("an intersection of classes");
    } else if (at("\\")) {
      escape();
    } else {
      copy(1);
    }
  }

  void group() {
    if (at("(*")) refuse("(*");
    if (!at("(?")) return copy(1);
    for (const std::string_view known :
         {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?-i:"}) {
      if (at(known)) return copy(known.size());
    }
    refuse(in_.substr(place_, 4));
  }

  // {2}, {2,} or {2,3}; anything else between braces is text.
  void repeat() {
    auto end = place_ + 1;
    while (end < in_.size() &&
           (std::isdigit(static_cast<unsigned char>(in_[end])) != 0 || in_[end] == ',')) {
      ++end;
    }
    if (end == in_.size() || in_[end] != '}' || end == place_ + 1 || in_[place_ + 1] == ',') {
      refuse("a brace that begins no number of repeats");
    }
    copy(end + 1 - place_);
    // Oniguruma repeats the repeat here, and PCRE2 gives nothing back.
    if (at("+")) refuse("{...}+");
  }

  void escape() {
    if (place_ + 1 == in_.size()) refuse("a \\ at its end");
    const char what = in_[place_ + 1];
    if (what == 's' || what == 'S') return white_space(what == 'S');
    if (what == 'p' || what == 'P') return property();
    if ((what == 'A' || what == 'z') && !in_class_) return copy(2);  // the text's ends
    if (what == 'd') {
      out_ += "\\p{Nd}";
      place_ += 2;
    } else if (what == 'u') {
      code_point(4);
    } else if (what == 'x') {
      if (at("\\x{")) {
        copy(2);
        copy(std::min(in_.find('}', place_), in_.size() - 1) + 1 - place_);
      } else {
        code_point(2);
      }
    } else if (std::string_view("nrtfae").find(what) != std::string_view::npos ||
               std::isalnum(static_cast<unsigned char>(what)) == 0) {
      copy(1 + character_bytes(what));
    } else {
      refuse(std::string("\\") + what);
    }
  }

  void white_space(bool negated) {
    place_ += 2;
    if (!in_class_) {
      out_ += fmt::format("[{}{}]", negated ? "^" : "", kWhiteSpace);
    } else if (negated) {
      refuse("\\S in a class");
    } else {
      out_ += kWhiteSpace;
    }
  }

  // General categories and scripts; PCRE2 refuses names that it does not know.
  void property() {
    const auto end = in_.find('}', place_);
    if (place_ + 2 >= in_.size() || in_[place_ + 2] != '{' || end == std::string::npos) {
      refuse(in_.substr(place_, 3));
    }
    copy(end + 1 - place_);
  }

  void code_point(std::size_t digits) {
    const auto hex = in_.substr(place_ + 2, digits);
    for (const char digit : hex) {
      if (std::isxdigit(static_cast<unsigned char>(digit)) == 0) refuse(in_.substr(place_, 2));
    }
    if (hex.size() < digits) refuse(in_.substr(place_, 2));
    out_ += "\\x{" + hex + "}";
    place_ += 2 + digits;
  }

  const std::string& in_;
  std::string out_;
  std::size_t place_ = 0;
  bool in_class_ = false;
};

// What a thread needs to match any pattern. No pattern has captures.
struct MatchMemory {
  MatchMemory()
      : data(pcre2_match_data_create(1, nullptr), &pcre2_match_data_free),
        context(pcre2_match_context_create(nullptr), &pcre2_match_context_free),
        stack(pcre2_jit_stack_create(kLeastStackBytes, kMostStackBytes, nullptr),
              &pcre2_jit_stack_free) {
    FARSTEP_CHECK(data && context, "no memory for a match");
    pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  }
  std::unique_ptr<pcre2_match_data, void (*)(pcre2_match_data*)> data;
  std::unique_ptr<pcre2_match_context, void (*)(pcre2_match_context*)> context;
  std::unique_ptr<pcre2_jit_stack, void (*)(pcre2_jit_stack*)> stack;  // none without JIT
};

std::string message_of(int error) {
  PCRE2_UCHAR text[160];
  return pcre2_get_error_message(error, text, sizeof(text)) < 0 ? fmt::format("error {}", error)
                                                                : reinterpret_cast<char*>(text);
}

}  // namespace

struct RegularExpression::Code {
  std::unique_ptr<pcre2_code, void (*)(pcre2_code*)> code;
  bool compiled = false;  // to machine code
};

RegularExpression::RegularExpression(const std::string& pattern)
    : RegularExpression(pattern, Translation(pattern)(), false) {}

RegularExpression RegularExpression::literal(const std::string& text) {
  return {text, text, true};
}

RegularExpression::RegularExpression(std::string pattern, const std::string& translated,
                                     bool is_literal)
    : pattern_(std::move(pattern)) {
  if (valid_utf8_bytes(translated) < translated.size()) {
    throw DataError("a regular expression is not valid UTF-8");
  }
  // Oniguruma's ^ and $ mean every line.
  const uint32_t options =
      PCRE2_UTF | PCRE2_NO_UTF_CHECK |
      (is_literal ? PCRE2_LITERAL
                  : PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NO_AUTO_CAPTURE | PCRE2_NEVER_BACKSLASH_C);
  const std::unique_ptr<pcre2_compile_context, void (*)(pcre2_compile_context*)> context(
      pcre2_compile_context_create(nullptr), &pcre2_compile_context_free);
  FARSTEP_CHECK(context != nullptr, "no memory for a regular expression");
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE place = 0;
  code_ = std::make_unique<Code>(
      Code{{pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                          options, &error, &place, context.get()),
            &pcre2_code_free}});
  if (!code_->code) {
    throw DataError(fmt::format("the regular expression '{}' cannot be read: {} at '{}'", pattern_,
                                message_of(error),
                                translated.substr(std::min(place, translated.size()))));
  }
  code_->compiled = pcre2_jit_compile(code_->code.get(), PCRE2_JIT_COMPLETE) == 0;
}

RegularExpression::~RegularExpression() = default;
RegularExpression::RegularExpression(RegularExpression&&) noexcept = default;
RegularExpression& RegularExpression::operator=(RegularExpression&&) noexcept = default;

// An empty match right behind the match before does not count, and the search goes on a character
// later, as in the library that the patterns were written for.
void RegularExpression::find_all(std::string_view text, std::vector<TextRange>& matches) const {
  matches.clear();
  std::string buffer;
  const auto known = with_known_characters(text, buffer);
  const auto* const subject = reinterpret_cast<PCRE2_SPTR>(known.data());
  const pcre2_code* const code = code_->code.get();
  // Made once a thread: texts may be a few bytes long, and the stack is mapped memory.
  static thread_local const MatchMemory memory;
  const PCRE2_SIZE* const found = pcre2_get_ovector_pointer(memory.data.get());
  std::size_t start = 0;
  while (start <= known.size()) {
    const int result = code_->compiled
                           ? pcre2_jit_match(code, subject, known.size(), start, PCRE2_NO_UTF_CHECK,
                                             memory.data.get(), memory.context.get())
                           : pcre2_match(code, subject, known.size(), start, PCRE2_NO_UTF_CHECK,
                                         memory.data.get(), memory.context.get());
    if (result == PCRE2_ERROR_NOMATCH) return;
    if (result < 0) {
      throw DataError(fmt::format("the regular expression '{}' fails on a text of {} bytes: {}",
                                  pattern_, text.size(), message_of(result)));
    }
    const TextRange match{found[0], found[1]};
    const bool is_empty = match.begin == match.end;
    if (is_empty && !matches.empty() && matches.back().end == match.begin) {
      start += start < known.size() ? character_bytes(known[start]) : 1;
      continue;
    }
    matches.push_back(match);
    start = match.end;
  }
}

}  // namespace farstep
