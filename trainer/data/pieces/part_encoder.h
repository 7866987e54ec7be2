// Encodes text in parts: a text falls apart between any two characters that are neighbours in no
// piece. Most parts are words, which a cache knows.
//
// A const PartEncoder is thread-safe, but for the cache.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "trainer/data/pieces/neighbours.h"
#include "trainer/data/pieces/word_cache.h"

namespace farstep {

class PartEncoder {
 public:
  virtual ~PartEncoder() = default;

  // Sets the ids of all bytes, which stand for characters that are no pieces. Before the first
  // encode().
  void set_bytes(const std::array<int32_t, 256>& ids) { bytes_ = ids; }

  // Appends the ids of a valid text. Throws DataError for a character that has none.
  void encode(std::string_view text, WordCache& cache, std::vector<int32_t>& ids) const;
  // Whether a text may be cut between these neighbours without a change of its ids.
  bool may_cut(char32_t before, char32_t after) const;

 protected:
  PartEncoder() = default;

  void add_neighbours(std::string_view piece) { neighbours_.add(piece); }
  // Sets the id of a character that is no piece, where bytes do not stand for it. With `fuse`,
  // neighbours share one.
  void set_unknown_id(std::optional<int32_t> id, bool fuse);
  // Appends what stands for a character that is no piece. Throws DataError if nothing does.
  void append_unknown(std::string_view character, std::vector<int32_t>& ids) const;

 private:
  virtual bool is_piece(char32_t character) const = 0;
  virtual void encode_part(std::string_view part, std::vector<int32_t>& ids) const = 0;
  bool fuses_unknown() const { return fuses_ && unknown_ && !bytes_; }

  Neighbours neighbours_;  // within pieces
  std::optional<std::array<int32_t, 256>> bytes_;
  std::optional<int32_t> unknown_;
  bool fuses_ = false;
};

}  // namespace farstep
