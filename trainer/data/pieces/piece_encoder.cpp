// Merges only make pieces, and a piece has only neighbours that some piece has. So a text falls
// apart between any two characters that are neighbours in no piece, whatever the merges are. Most
// parts are words, which a cache knows.
#include "trainer/data/pieces/piece_encoder.h"

#include <algorithm>

#include "trainer/base/error.h"
#include "trainer/data/text/utf8.h"

namespace farstep {

void PieceEncoder::add_piece(std::string_view piece, int32_t id) {
  const char32_t first = character_at(piece, 0);
  if (piece.size() > character_bytes(piece[0])) return neighbours_.add(piece);
  if (characters_.size() <= first) characters_.resize(first + 1, -1);
  characters_[first] = id;
}

void PieceEncoder::add_literal(std::string_view literal, int32_t id) {
  literals_.add(literal, id);
  neighbours_.add(literal);
}

void PieceEncoder::set_unknown(int32_t id, bool fuse) {
  unknown_ = id;
  fuses_ = fuse;
}

int32_t PieceEncoder::symbol_of(char32_t character) const {
  const bool is_piece = character < characters_.size() && characters_[character] >= 0;
  return is_piece ? characters_[character] : symbol_of_character(character);
}

// A character that is a piece is no unknown one, which would be fused with its neighbour.
bool PieceEncoder::may_cut(char32_t before, char32_t after) const {
  const bool fuses = fuses_ && !bytes_ && symbol_of(after) >= kCharacters;
  return !fuses && !neighbours_.may_join(before, after);
}

void PieceEncoder::encode(std::string_view text, WordCache& cache,
                          std::vector<int32_t>& ids) const {
  const auto first_id = static_cast<std::ptrdiff_t>(ids.size());
  std::vector<int32_t> part_ids;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = neighbours_.end_of_part(text, begin);
    const auto part = text.substr(begin, end - begin);
    begin = end;
    if (const auto known = WordCache::keeps(part) ? cache.find(part) : std::nullopt) {
      ids.insert(ids.end(), known->begin(), known->end());
      continue;
    }
    part_ids.clear();
    encode_part(part, part_ids);
    ids.insert(ids.end(), part_ids.begin(), part_ids.end());
    if (WordCache::keeps(part)) cache.insert(part, part_ids);
  }
  if (!fuses_ || bytes_) return;
  const auto is_repeated = [&](int32_t a, int32_t b) { return a == b && a == *unknown_; };
  ids.erase(std::unique(ids.begin() + first_id, ids.end(), is_repeated), ids.end());
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
  } else if (bytes_) {
    std::string character;
    append_character(character, static_cast<char32_t>(symbol - kCharacters));
    for (const char byte : character) ids.push_back((*bytes_)[static_cast<unsigned char>(byte)]);
  } else if (unknown_) {
    ids.push_back(*unknown_);
  } else {
    throw DataError(
        fmt::format("the tokenizer has no token for U+{:04X}, none for its bytes and none for the "
                    "unknown; take another tokenizer, or leave that character out of the text",
                    symbol - kCharacters));
  }
}

}  // namespace farstep
