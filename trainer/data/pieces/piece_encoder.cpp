#include "trainer/data/pieces/piece_encoder.h"

#include "trainer/data/text/utf8.h"

namespace farstep {

void PieceEncoder::add_piece(std::string_view piece, int32_t id) {
  const char32_t first = character_at(piece, 0);
  if (piece.size() > character_bytes(piece[0])) return add_neighbours(piece);
  if (characters_.size() <= first) characters_.resize(first + 1, -1);
  characters_[first] = id;
}

void PieceEncoder::add_literal(std::string_view literal, int32_t id) {
  literals_.add(literal, id);
  add_neighbours(literal);
}

int32_t PieceEncoder::symbol_of(char32_t character) const {
  const bool is_piece = character < characters_.size() && characters_[character] >= 0;
  return is_piece ? characters_[character] : symbol_of_character(character);
}

void PieceEncoder::encode_part(std::string_view part, std::vector<int32_t>& ids) const {
  std::vector<int32_t> symbols;
  for (std::size_t place = 0; place < part.size();) {
    const auto literal = literals_.empty() ? std::nullopt : literals_.at(part, place);
    symbols.push_back(literal ? kLiterals + literal->value : symbol_of(character_at(part, place)));
    place = literal ? literal->end : place + character_bytes(part[place]);
  }
  merges_.apply(symbols);
  for (const int32_t symbol : symbols) append(symbol, ids);
}

void PieceEncoder::append(int32_t symbol, std::vector<int32_t>& ids) const {
  if (symbol < kCharacters) {
    ids.push_back(symbol);
  } else if (symbol >= kLiterals) {
    ids.push_back(symbol - kLiterals);
  } else {
    std::string character;
    append_character(character, static_cast<char32_t>(symbol - kCharacters));
    append_unknown(character, ids);
  }
}

}  // namespace farstep
