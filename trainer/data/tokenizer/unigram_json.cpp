// Both libraries cut a text in the likeliest way, but `tokenizers` also finds the names of pieces
// that have no text: "<0x41>" in a text would become the byte. So these get a score that no way to
// cut a text can want: below that of the name's characters, one by one.
//
// A name with an unknown character cannot be made so unlikely, as an unknown one is even less
// likely. A pre-tokenizer takes the text apart there. Nothing else changes, because no piece has
// such a character.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "trainer/data/text/utf8.h"
#include "trainer/data/tokenizer/model_json.h"

namespace farstep {

namespace {

using FileJson = nlohmann::json;

std::set<std::string> characters_of(const std::string& text) {
  std::set<std::string> characters;
  for (std::size_t place = 0; place < text.size(); place += character_bytes(text[place])) {
    characters.insert(text.substr(place, character_bytes(text[place])));
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

// An expression that matches one of these characters, each of one byte.
std::string one_of(const std::set<std::string>& characters) {
  std::string expression = "[";
  for (const auto& character : characters) {
    expression += fmt::format("\\x{{{:x}}}", static_cast<unsigned char>(character[0]));
  }
  return expression + "]";
}

}  // namespace

ModelJson unigram_json(const SentencePieceFile& file) {
  ModelJson made;
  std::set<std::string> known, in_names;
  for (const auto& piece : file.pieces) {
    if (has_text(piece) && is_one_character(piece.text)) known.insert(piece.text);
    if (!has_text(piece)) in_names.merge(characters_of(piece.text));
  }
  // Of pieces with other characters it would depend on the score of an unknown one.
  for (const auto& piece : file.pieces) {
    for (const auto& character : characters_of(piece.text)) {
      if (!has_text(piece) || known.contains(character)) continue;
      made.fault =
          fmt::format("the character '{}' of its piece '{}' is no piece", character, piece.text);
    }
  }
  std::erase_if(in_names, [&](const auto& character) {
    return known.contains(character) || character.size() > 1;
  });
  // Without bytes neighbours that are unknown share an id, so nothing may come between them. No
  // name is a byte's then.
  if (file.byte_fallback && !in_names.empty()) {
    made.pre_tokenizer = {{"type", "Split"},
                          {"pattern", {{"Regex", one_of(in_names)}}},
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
