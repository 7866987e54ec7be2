// No piece crosses the border of two characters that are neighbours in none. So the best way to cut
// a text is the best way for each part between such borders, and most parts are in the cache.
#include "trainer/data/pieces/unigram_encoder.h"

#include <algorithm>

#include "trainer/base/error.h"
#include "trainer/data/text/utf8.h"

namespace farstep {

namespace {

int32_t symbol_of_byte(char byte) {
  return static_cast<unsigned char>(byte);
}

}  // namespace

std::optional<int32_t> UnigramEncoder::child(int32_t node, char byte) const {
  const auto* const found = children_.find(node, symbol_of_byte(byte));
  return found == nullptr ? std::nullopt : std::optional(found->merged);
}

int32_t UnigramEncoder::node_of(std::string_view piece) const {
  int32_t node = 0;
  for (const char byte : piece) {
    const auto next = child(node, byte);
    if (!next) return kNone;
    node = *next;
  }
  return node;
}

void UnigramEncoder::add_piece(std::string_view piece, int32_t id, double score) {
  int32_t node = 0;
  for (const char byte : piece) {
    if (const auto next = child(node, byte)) {
      node = *next;
      continue;
    }
    const auto made = static_cast<int32_t>(nodes_.size());
    nodes_.emplace_back();
    children_.set(node, symbol_of_byte(byte), {.merged = made});
    node = made;
  }
  nodes_[static_cast<std::size_t>(node)] = {id, score};
  neighbours_.add(piece);
}

void UnigramEncoder::remove_piece(std::string_view piece) {
  const int32_t node = node_of(piece);
  if (node >= 0) nodes_[static_cast<std::size_t>(node)] = {};
}

void UnigramEncoder::set_unknown(double score, std::optional<int32_t> id) {
  unknown_score_ = score;
  unknown_ = id;
}

bool UnigramEncoder::may_cut(char32_t before, char32_t after) const {
  if (neighbours_.may_join(before, after)) return false;
  if (bytes_) return true;
  // Two unknown characters would share an id.
  std::string character;
  append_character(character, after);
  const int32_t node = node_of(character);
  return node >= 0 && nodes_[static_cast<std::size_t>(node)].id >= 0;
}

void UnigramEncoder::encode(std::string_view text, WordCache& cache,
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
  if (bytes_ || !unknown_) return;
  const auto is_repeated = [&](int32_t a, int32_t b) { return a == b && a == *unknown_; };
  ids.erase(std::unique(ids.begin() + first_id, ids.end(), is_repeated), ids.end());
}

// At each place: the best sum of what ends there, and the last piece of it.
void UnigramEncoder::encode_part(std::string_view part, std::vector<int32_t>& ids) const {
  struct Place {
    double sum = 0;
    std::size_t begin = 0;  // of the last piece
    int32_t id = kNone;
    bool reached = false;
  };
  std::vector<Place> places(part.size() + 1);
  const auto reach = [&](std::size_t begin, std::size_t end, int32_t id, double score) {
    const double sum = places[begin].sum + score;
    if (!places[end].reached || sum > places[end].sum) places[end] = {sum, begin, id, true};
  };
  for (std::size_t begin = 0; begin < part.size(); begin += character_bytes(part[begin])) {
    const auto after_character = begin + character_bytes(part[begin]);
    bool is_known = false;
    int32_t node = 0;
    for (auto end = begin; end < part.size();) {
      const auto next = child(node, part[end++]);
      if (!next) break;
      node = *next;
      const auto& found = nodes_[static_cast<std::size_t>(node)];
      if (found.id < 0) continue;
      reach(begin, end, found.id, found.score);
      is_known |= end == after_character;
    }
    if (!is_known) reach(begin, after_character, kNone, unknown_score_);
  }
  std::vector<std::size_t> ends;
  for (auto end = part.size(); end > 0; end = places[end].begin) ends.push_back(end);
  for (auto end = ends.rbegin(); end != ends.rend(); ++end) {
    const auto& place = places[*end];
    if (place.id >= 0) {
      ids.push_back(place.id);
    } else {
      append_unknown(part.substr(place.begin, *end - place.begin), ids);
    }
  }
}

void UnigramEncoder::append_unknown(std::string_view character, std::vector<int32_t>& ids) const {
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
