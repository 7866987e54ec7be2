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

// The scores as SentencePiece has them.
class Scores {
 public:
  explicit Scores(const SentencePieceFile& file) {
    least_ = 0;
    bool found = false;
    std::size_t longest = 1;
    for (const auto& piece : file.pieces) {
      longest = std::max(longest, piece.text.size());
      if (piece.type != PieceType::kNormal) continue;
      most_ = found ? std::max(most_, piece.score) : piece.score;
      least_ = std::min(least_, piece.score);
      found = true;
    }
    for (const auto& piece : file.pieces) {
      if (piece.type == PieceType::kUserDefined) least_ = std::min(least_, of_fixed(piece));
    }
    nameless_ = static_cast<float>(longest) * least_ - 1;
  }

  float of(const SentencePieceFile::Piece& piece) const {
    return piece.type == PieceType::kNormal        ? piece.score
           : piece.type == PieceType::kUserDefined ? of_fixed(piece)
                                                   : nameless_;
  }

 private:
  // So that it wins against pieces for each of its bytes.
  float of_fixed(const SentencePieceFile::Piece& piece) const {
    return static_cast<float>(static_cast<float>(piece.text.size()) * most_ - 0.1);
  }

  float most_ = 0, least_ = 0, nameless_ = 0;
};

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
    const bool has_text = piece.type == PieceType::kNormal || piece.type == PieceType::kUserDefined;
    if (has_text && is_one_character(piece.text)) known.insert(piece.text);
    if (!has_text) in_names.merge(characters_of(piece.text));
  }
  // Of pieces with other characters it would depend on the score of an unknown one.
  for (const auto& piece : file.pieces) {
    const bool has_text = piece.type == PieceType::kNormal || piece.type == PieceType::kUserDefined;
    for (const auto& character : characters_of(piece.text)) {
      if (!has_text || known.contains(character)) continue;
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
  const Scores scores(file);
  FileJson vocabulary = FileJson::array();
  FileJson unknown = nullptr;
  for (std::size_t id = 0; id < file.pieces.size(); ++id) {
    const auto& piece = file.pieces[id];
    vocabulary.push_back(FileJson::array({piece.text, static_cast<double>(scores.of(piece))}));
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
