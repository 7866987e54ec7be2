// A byte-pair model has a score for each piece, and tokenizer.json a list of merges. So the pairs
// that make a piece are listed by its score. Two pairs of one piece are neighbours in the list, the
// one with the longer left part first, as in the files that `transformers` makes.
#include "trainer/data/tokenizer/model_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "trainer/data/text/utf8.h"

namespace farstep {

namespace {

using FileJson = nlohmann::json;

struct Merge {
  float score;
  std::size_t left_bytes;
  const std::string* piece;
};

// Returns all pairs that make a piece, the best first. Sets `fault` if no list says the same.
std::vector<Merge> merges_of(const SentencePieceFile& file,
                             const std::unordered_set<std::string>& texts, std::string& fault) {
  std::vector<Merge> merges;
  for (const auto& piece : file.pieces) {
    const auto& text = piece.text;
    // Spaces are replaced before, so none of the file's pieces with one is ever found.
    if (piece.type != PieceType::kNormal || text.find(' ') != text.npos) continue;
    for (auto cut = character_bytes(text[0]); cut < text.size();
         cut += character_bytes(text[cut])) {
      const auto left = text.substr(0, cut), right = text.substr(cut);
      for (const auto& part : {left, right}) {
        // It may be part of a piece, but be none itself.
        if (is_one_character(part) && !texts.contains(part)) {
          fault = fmt::format("the character '{}' of its piece '{}' is no piece", part, text);
        }
      }
      if (texts.contains(left) && texts.contains(right))
        merges.push_back({piece.score, cut, &text});
    }
  }
  std::ranges::stable_sort(merges, [](const Merge& a, const Merge& b) {
    return a.score != b.score ? a.score > b.score : a.left_bytes > b.left_bytes;
  });
  for (std::size_t i = 1; i < merges.size(); ++i) {
    const auto &a = merges[i - 1], &b = merges[i];
    // Of equal scores the one further left in the text is merged first, which no list says.
    if (a.score == b.score && a.piece != b.piece) {
      fault = fmt::format("its pieces '{}' and '{}' have one score", *a.piece, *b.piece);
    }
  }
  return merges;
}

}  // namespace

ModelJson byte_pair_json(const SentencePieceFile& file) {
  std::unordered_set<std::string> texts;
  FileJson vocabulary = FileJson::object();
  FileJson unknown = nullptr;
  for (std::size_t id = 0; id < file.pieces.size(); ++id) {
    const auto& piece = file.pieces[id];
    vocabulary[piece.text] = id;
    if (piece.type == PieceType::kNormal) texts.insert(piece.text);
    if (piece.type == PieceType::kUnknown) unknown = piece.text;
  }
  ModelJson made;
  FileJson merges = FileJson::array();
  for (const auto& merge : merges_of(file, texts, made.fault)) {
    const auto left = merge.piece->substr(0, merge.left_bytes);
    merges.push_back(left + " " + merge.piece->substr(merge.left_bytes));
  }
  made.model = {{"type", "BPE"},
                {"dropout", nullptr},
                {"unk_token", unknown},
                {"continuing_subword_prefix", nullptr},
                {"end_of_word_suffix", nullptr},
                {"fuse_unk", true},
                {"byte_fallback", file.byte_fallback},
                {"ignore_merges", false},
                {"vocab", std::move(vocabulary)},
                {"merges", std::move(merges)}};
  return made;
}

}  // namespace farstep
