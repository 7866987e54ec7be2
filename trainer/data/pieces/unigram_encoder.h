// Encodes text by the likeliest pieces: each has a score, and of all ways to cut a text the one
// counts whose scores have the largest sum. Of ways with one sum, the pieces that begin first are
// the longest. No piece crosses the border of two parts in which a text is encoded, so the best way
// for each makes the best way for the text.
//
// A const UnigramEncoder is thread-safe, but for the cache.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "trainer/data/pieces/pair_table.h"
#include "trainer/data/pieces/part_encoder.h"

namespace farstep {

class UnigramEncoder : public PartEncoder {
 public:
  // Building, before the first encode(). Pieces are valid UTF-8, not empty.
  // Adds a piece; of equal ones the last counts.
  void add_piece(std::string_view piece, int32_t id, double score);
  // Takes a piece out again: text that has it is cut in other ways.
  void remove_piece(std::string_view piece);
  // Sets what a character counts that is no piece, and its id where bytes do not stand for it.
  // Neighbours share one id.
  void set_unknown(double score, std::optional<int32_t> id);

 private:
  static constexpr int32_t kNone = -1;

  struct Node {
    int32_t id = kNone;  // of the piece that ends here
    double score = 0;
  };

  std::optional<int32_t> child(int32_t node, char byte) const;
  int32_t node_of(std::string_view piece) const;
  bool is_piece(char32_t character) const override;
  void encode_part(std::string_view part, std::vector<int32_t>& ids) const override;

  std::vector<Node> nodes_ = std::vector<Node>(1);  // of a tree of bytes; the first is its root
  PairTable children_;                              // of a node, by the byte
  double unknown_score_ = 0;
};

}  // namespace farstep
