#include "trainer/data/tokenizer_json/unigram_model.h"

#include <algorithm>

namespace farstep {

namespace {
// That of SentencePiece and `tokenizers`: a character without a piece is less likely than each
// piece.
constexpr double kUnknownPenalty = 10;
}  // namespace

UnigramModel::UnigramModel(const JsonValue& json) {
  const auto list = json["vocab"];
  pieces.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto entry = list.at(i);
    if (entry.size() != 2) entry.refuse("must be a piece and its score");
    pieces.push_back({entry.at(0).text(), entry.at(1).number()});
  }
  if (pieces.empty()) list.refuse("must have a piece");
  byte_fallback = json["byte_fallback"].flag(false);
  if (const auto id = json["unk_id"]; !id.is_null()) {
    unknown = id.id();
    if (*unknown >= std::ssize(pieces)) id.refuse("is no id of the vocabulary");
  }
}

double UnigramModel::unknown_score() const {
  const auto least = std::ranges::min(pieces, {}, &Piece::score);
  return least.score - kUnknownPenalty;
}

}  // namespace farstep
