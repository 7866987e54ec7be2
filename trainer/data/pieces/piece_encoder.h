// Byte-pair encoding of text by characters. Merges only make pieces, so no merge joins two of the
// parts in which a text is encoded.
//
// A const PieceEncoder is thread-safe, but for the cache.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "trainer/data/pieces/literal_set.h"
#include "trainer/data/pieces/merges.h"
#include "trainer/data/pieces/pair_table.h"
#include "trainer/data/pieces/part_encoder.h"

namespace farstep {

class PieceEncoder : public PartEncoder {
 public:
  // The symbol of a character that is no piece, and of a piece that never merges. Both lie above
  // all ids.
  static int32_t symbol_of_character(char32_t character) {
    return kCharacters + static_cast<int32_t>(character);
  }

  // Building, before the first encode(). Pieces and literals are valid UTF-8, not empty.
  // Adds a piece that merges make, or that is a character.
  void add_piece(std::string_view piece, int32_t id);
  // Adds a piece that is found in the text before all merges, and stays as it is.
  void add_literal(std::string_view literal, int32_t id);
  // Sets the id of a character that is no piece, where bytes do not stand for it. With `fuse`,
  // neighbours share one.
  void set_unknown(int32_t id, bool fuse) { set_unknown_id(id, fuse); }
  // Sets what two symbols become: ids, or characters.
  void set_merge(int32_t left, int32_t right, PairTable::Merge merge) {
    merges_.set(left, right, merge);
  }
  // Returns the symbol of a character: the id of its piece, or symbol_of_character().
  int32_t symbol_of(char32_t character) const;

 private:
  static constexpr int32_t kCharacters = 1 << 26, kLiterals = 1 << 28;

  bool is_piece(char32_t character) const override { return symbol_of(character) < kCharacters; }
  void encode_part(std::string_view part, std::vector<int32_t>& ids) const override;
  void append(int32_t symbol, std::vector<int32_t>& ids) const;

  Merges merges_;
  LiteralSet literals_;
  std::vector<int32_t> characters_;  // by character, up to the last that is a piece; -1 is none
};

}  // namespace farstep
