#include "trainer/data/pieces/unigram_encoder.h"

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
  add_neighbours(piece);
}

void UnigramEncoder::remove_piece(std::string_view piece) {
  const int32_t node = node_of(piece);
  if (node >= 0) nodes_[static_cast<std::size_t>(node)] = {};
}

void UnigramEncoder::set_unknown(double score, std::optional<int32_t> id) {
  unknown_score_ = score;
  set_unknown_id(id, /*fuse=*/true);
}

bool UnigramEncoder::is_piece(char32_t character) const {
  std::string text;
  append_character(text, character);
  const int32_t node = node_of(text);
  return node >= 0 && nodes_[static_cast<std::size_t>(node)].id >= 0;
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

}  // namespace farstep
