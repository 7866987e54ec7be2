// What of a SentencePiece model Farstep reads itself, beside the library.
//
// The file is a protocol buffer, ModelProto of sentencepiece_model.proto. Debian's package has no
// header for it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace farstep {

enum class PieceType { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

struct SentencePieceFile {
  struct Piece {
    std::string text;
    float score = 0;
    PieceType type = PieceType::kNormal;
  };
  static constexpr int64_t kUnigram = 1, kBytePairs = 2;  // values of model_type

  std::vector<Piece> pieces;  // by id
  int64_t model_type = kUnigram;
  bool byte_fallback = false;
  bool whitespace_is_suffix = false;
  std::string character_map;  // a table by which it normalises text; empty: none
  bool adds_prefix = true;    // a space before a text
  bool removes_whitespace = true;
  bool escapes_whitespace = true;  // as U+2581

  bool is_unigram() const { return model_type == kUnigram; }
  bool is_byte_pairs() const { return model_type == kBytePairs; }
  // Whether merges of characters give the library's result. What is left out are kinds of models
  // that nobody trains for this, or that no merges describe.
  bool is_plain() const;
  // Whether all pieces have a use, a score and a text by which they can be found.
  bool has_usual_pieces() const;
  // Returns the ids of the pieces of all bytes; nullopt if one is missing.
  std::optional<std::array<int32_t, 256>> byte_ids() const;
};

// Whether the text, valid UTF-8, is one character.
bool is_one_character(const std::string& text);

// Returns the model in `content`; nullopt if it is no protocol buffer of that form.
std::optional<SentencePieceFile> read_sentencepiece_file(std::string_view content);

}  // namespace farstep
