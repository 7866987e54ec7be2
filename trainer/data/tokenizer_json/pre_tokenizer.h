// The pre-tokenizer of a tokenizer.json: cuts a text into words, which are encoded one by one.
//
// A const PreTokenizer is thread-safe.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "trainer/data/text/regular_expression.h"
#include "trainer/data/tokenizer_json/json_members.h"

namespace farstep {

// Words of a text, and the memory to make them, which is used again for the next text.
struct Words {
  std::vector<std::string_view> words;
  std::vector<std::string_view> before;  // a step's input
  std::vector<TextRange> matches;
  std::deque<std::string> made;  // words that are not in the text as they are
};

class PreTokenizer {
 public:
  // Reads the member "pre_tokenizer". Takes null, Sequence, Split, Digits, Metaspace, and ByteLevel
  // at the end. Throws DataError for others.
  explicit PreTokenizer(const JsonValue& json);

  // Whether the words are encoded by bytes; otherwise by characters.
  bool by_bytes() const { return by_bytes_; }
  // Whether words begin with a space that the text does not have.
  bool prepends() const;
  // Whether a text may be cut between a letter and a space or newline without a change of its
  // words. By bytes that holds for the expressions that are known here. By characters words may end
  // at the cut, where no token goes on; others may not change. That holds where only digits and
  // single characters are looked for.
  bool may_cut() const;
  // Replaces `words.words` by those of a valid text, which is not empty and begins the whole text
  // or not. They hold as long as the text, and until the next call.
  void split(std::string_view text, bool begins_text, Words& words) const;

 private:
  enum class Behavior { kIsolated, kRemoved, kWithPrevious, kWithNext, kContiguous };
  enum class PrefixOf { kNone, kFirst, kAll };
  struct Split {
    RegularExpression expression;
    Behavior behavior;
    bool invert;
    bool is_local;  // a match depends on nothing around it but more digits
  };
  struct SpacePrefix {};  // of every word that has none
  struct Metaspace {
    std::string space;  // stands for a space
    PrefixOf prefix;
    bool splits;
  };

  void add(const JsonValue& json, bool is_last, int depth);
  void add_split(const JsonValue& json);
  bool may_cut_bytes() const;
  void add_metaspace(const JsonValue& json);
  static void apply(const Split& step, std::string_view word, bool begins_text, Words& words);
  static void apply(const SpacePrefix& step, std::string_view word, bool begins_text, Words& words);
  static void apply(const Metaspace& step, std::string_view word, bool begins_text, Words& words);

  std::vector<std::variant<Split, SpacePrefix, Metaspace>> steps_;
  bool by_bytes_ = false;
};

}  // namespace farstep
