// Both libraries cut a text in the likeliest way, but `tokenizers` also finds the names of pieces
// that have no text: "<0x41>" in a text would become the byte. So these get a score that no way to
// cut a text can want: below that of the name's characters, one by one.
//
// A name with an unknown character cannot be made so unlikely, as an unknown one is even less
// likely. A pre-tokenizer takes the text apart beside such a character. Nothing else changes,
// because no piece has it.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>
#include <vector>

#include "trainer/data/text/utf8.h"
#include "trainer/data/tokenizer/model_json.h"

namespace farstep {

namespace {

using FileJson = nlohmann::json;

using Characters = std::set<char32_t>;

std::vector<char32_t> characters_of(const std::string& text) {
  std::vector<char32_t> characters;
  for (std::size_t place = 0; place < text.size(); place += character_bytes(text[place])) {
    characters.push_back(character_at(text, place));
  }
  return characters;
}

bool has_text(const SentencePieceFile::Piece& piece) {
  return piece.type == PieceType::kNormal || piece.type == PieceType::kUserDefined;
}

// By which SentencePiece prefers a fixed piece to all others, whose scores are logarithms of
// probabilities.
constexpr float kFixedScore = 0.1f;

// Returns a score below that of any piece's text, character by character.
float least_score(const SentencePieceFile& file) {
  float least = 0;
  std::size_t longest = 0;
  for (const auto& piece : file.pieces) {
    longest = std::max(longest, piece.text.size());
    if (piece.type == PieceType::kNormal) least = std::min(least, piece.score);
  }
  return static_cast<float>(longest) * least - 1;
}

std::string expression_of(std::span<const char32_t> characters) {
  std::string expression;
  for (const char32_t character : characters) {
    expression += fmt::format("\\x{{{:x}}}", static_cast<uint32_t>(character));
  }
  return expression;
}

// Returns an expression that finds where to cut a text, so that no name with an unknown character
// is left whole; empty if there is no such name. Without bytes, unknown neighbours share an id.
// Then the cut is between a known and an unknown character.
std::string cuts_in_names(const SentencePieceFile& file, const Characters& known) {
  Characters unknown;
  std::string borders;
  for (const auto& piece : file.pieces) {
    if (has_text(piece)) continue;
    const auto name = characters_of(piece.text);
    for (std::size_t i = 0; i < name.size(); ++i) {
      if (!known.contains(name[i])) unknown.insert(name[i]);
    }
    for (std::size_t i = 1; i < name.size(); ++i) {
      if (known.contains(name[i - 1]) == known.contains(name[i])) continue;
      const std::span all(name);
      borders += fmt::format("{}(?<={})(?={})", borders.empty() ? "" : "|",
                             expression_of(all.first(i)), expression_of(all.subspan(i)));
      break;
    }
  }
  if (!file.byte_fallback || unknown.empty()) return borders;
  return "[" + expression_of(std::vector(unknown.begin(), unknown.end())) + "]";
}

}  // namespace

ModelJson unigram_json(const SentencePieceFile& file) {
  ModelJson made;
  Characters known;
  for (const auto& piece : file.pieces) {
    if (has_text(piece) && is_one_character(piece.text)) known.insert(character_at(piece.text, 0));
  }
  // Of pieces with other characters it would depend on the score of an unknown one.
  for (const auto& piece : file.pieces) {
    for (const char32_t character : characters_of(piece.text)) {
      if (!has_text(piece) || known.contains(character)) continue;
      std::string text;
      append_character(text, character);
      made.fault =
          fmt::format("the character '{}' of its piece '{}' is no piece", text, piece.text);
    }
  }
  if (const auto cuts = cuts_in_names(file, known); !cuts.empty()) {
    made.pre_tokenizer = {{"type", "Split"},
                          {"pattern", {{"Regex", cuts}}},
                          {"behavior", "Isolated"},
                          {"invert", false}};
  }
  const float least = least_score(file);
  FileJson vocabulary = FileJson::array();
  FileJson unknown = nullptr;
  for (std::size_t id = 0; id < file.pieces.size(); ++id) {
    const auto& piece = file.pieces[id];
    const float score = piece.type == PieceType::kUserDefined ? kFixedScore
                        : has_text(piece)                     ? piece.score
                                                              : least;
    vocabulary.push_back(FileJson::array({piece.text, static_cast<double>(score)}));
    if (piece.type == PieceType::kUnknown) unknown = id;
    if (piece.type == PieceType::kByte && !file.byte_fallback) {
      made.fault = "it has pieces of bytes, and does not use them";
    }
  }
  made.model = {{"type", "Unigram"},
                {"unk_id", unknown},
                {"byte_fallback", file.byte_fallback},
                {"vocab", std::move(vocabulary)}};
  return made;
}

}  // namespace farstep
