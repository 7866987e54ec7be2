#include "trainer/data/pieces/part_encoder.h"

#include <algorithm>

#include "trainer/base/error.h"
#include "trainer/data/text/utf8.h"

namespace farstep {

void PartEncoder::set_unknown_id(std::optional<int32_t> id, bool fuse) {
  unknown_ = id;
  fuses_ = fuse;
}

// A character that is a piece is no unknown one, which would be fused with its neighbour.
bool PartEncoder::may_cut(char32_t before, char32_t after) const {
  return !neighbours_.may_join(before, after) && (!fuses_unknown() || is_piece(after));
}

void PartEncoder::encode(std::string_view text, WordCache& cache, std::vector<int32_t>& ids) const {
  const auto first_id = static_cast<std::ptrdiff_t>(ids.size());
  for (std::size_t begin = 0, end; begin < text.size(); begin = end) {
    end = neighbours_.end_of_part(text, begin);
    const auto part = text.substr(begin, end - begin);
    cache.append(part, ids, [&](std::vector<int32_t>& part_ids) { encode_part(part, part_ids); });
  }
  if (!fuses_unknown()) return;
  const auto is_repeated = [&](int32_t a, int32_t b) { return a == b && a == *unknown_; };
  ids.erase(std::unique(ids.begin() + first_id, ids.end(), is_repeated), ids.end());
}

void PartEncoder::append_unknown(std::string_view character, std::vector<int32_t>& ids) const {
  if (bytes_) {
    for (const char byte : character) ids.push_back((*bytes_)[static_cast<unsigned char>(byte)]);
  } else if (unknown_) {
    ids.push_back(*unknown_);
  } else {
    throw DataError(
        fmt::format("the tokenizer has no token for U+{:04X}, none for its bytes and none for the "
                    "unknown; take another tokenizer, or leave that character out of the text",
                    static_cast<uint32_t>(character_at(character, 0))));
  }
}

}  // namespace farstep
