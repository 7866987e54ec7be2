// Encodes text by the likeliest pieces: each has a score, and of all ways to cut a text the one
// counts whose scores have the largest sum.
//
// A const UnigramEncoder is thread-safe, but for the cache.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "trainer/data/pieces/neighbours.h"
#include "trainer/data/pieces/pair_table.h"
#include "trainer/data/pieces/word_cache.h"

namespace farstep {

class UnigramEncoder {
 public:
  // Building, before the first encode(). Pieces are valid UTF-8, not empty.
  // Adds a piece; of equal ones the last counts.
  void add_piece(std::string_view piece, int32_t id, double score);
  // Takes a piece out again: text that has it is cut in other ways.
  void remove_piece(std::string_view piece);
  // Sets the ids of all bytes, which stand for characters that are no pieces.
  void set_bytes(const std::array<int32_t, 256>& ids) { bytes_ = ids; }
  // Sets what a character counts that is no piece, and its id where bytes do not stand for it.
  // Neighbours share one id.
  void set_unknown(double score, std::optional<int32_t> id);

  // Appends the ids of a valid text. Of ways with one sum, the pieces that begin first are the
  // longest. Throws DataError for a character that has none.
  void encode(std::string_view text, WordCache& cache, std::vector<int32_t>& ids) const;
  // Whether a text may be cut between these neighbours without a change of its ids.
  bool may_cut(char32_t before, char32_t after) const;

 private:
  static constexpr int32_t kNone = -1;

  struct Node {
    int32_t id = kNone;  // of the piece that ends here
    double score = 0;
  };

  std::optional<int32_t> child(int32_t node, char byte) const;
  int32_t node_of(std::string_view piece) const;
  void encode_part(std::string_view part, std::vector<int32_t>& ids) const;
  void append_unknown(std::string_view character, std::vector<int32_t>& ids) const;

  std::vector<Node> nodes_ = std::vector<Node>(1);  // of a tree of bytes; the first is its root
  PairTable children_;                              // of a node, by the byte
  Neighbours neighbours_;                           // within pieces
  std::optional<std::array<int32_t, 256>> bytes_;
  std::optional<int32_t> unknown_;
  double unknown_score_ = 0;
};

}  // namespace farstep
