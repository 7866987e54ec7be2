// A byte-pair model has a score for each piece, and tokenizer.json a list of merges. So the pairs
// that make a piece are listed by its score. Two pairs of one piece are neighbours in the list, the
// one with the longer left part first, as in the files that `transformers` makes.
#include "trainer/data/tokenizer/sentencepiece_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/data/text/utf8.h"
#include "trainer/data/tokenizer/json_tokenizer.h"
#include "trainer/data/tokenizer/sentencepiece_file.h"
#include "trainer/data/tokenizer/sentencepiece_tokenizer.h"
#include "trainer/data/tokenizer/tokenizer_files.h"

namespace farstep {

namespace {

using FileJson = nlohmann::json;
using Ids = std::unordered_map<std::string, int32_t>;

constexpr const char* kSpaceText = "\xe2\x96\x81";  // U+2581, which stands for a space

// What tokenizer.json has no words for; empty if there is nothing of it.
std::string fault_of(const SentencePieceFile& file) {
  if (file.model_type != SentencePieceFile::kBytePairs) return "it is no byte-pair model";
  if (!file.is_plain()) return "it changes text before it finds pieces, or has unusual pieces";
  if (file.byte_fallback && !file.byte_ids()) return "it lacks pieces of bytes";
  const auto is_fixed = [](const auto& piece) { return piece.type == PieceType::kUserDefined; };
  if (file.adds_prefix && std::ranges::any_of(file.pieces, is_fixed)) {
    return "it puts a space before a text and has fixed pieces, which would get one too";
  }
  return "";
}

struct Merge {
  float score;
  std::size_t left_bytes;
  const std::string* piece;
};

// Returns all pairs that make a piece, the best first. Sets `fault` if no list says the same.
std::vector<Merge> merges_of(const SentencePieceFile& file, const Ids& ids, std::string& fault) {
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
        if (is_one_character(part) && !ids.contains(part)) {
          fault = fmt::format("the character '{}' of its piece '{}' is no piece", part, text);
        }
      }
      if (ids.contains(left) && ids.contains(right)) merges.push_back({piece.score, cut, &text});
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

FileJson added_token(const SentencePieceFile::Piece& piece, std::size_t id) {
  const bool is_fixed = piece.type == PieceType::kUserDefined;
  // Fixed pieces are looked for in the text with its spaces replaced.
  return {{"id", id},        {"content", piece.text},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", is_fixed}, {"special", !is_fixed}};
}

FileJson replacement(const char* from, const char* to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

FileJson normalizer_of(const SentencePieceFile& file) {
  FileJson steps = FileJson::array();
  if (file.adds_prefix) steps.push_back(FileJson{{"type", "Prepend"}, {"prepend", kSpaceText}});
  steps.push_back(replacement(" ", kSpaceText));
  return {{"type", "Sequence"}, {"normalizers", std::move(steps)}};
}

FileJson decoder_of(const SentencePieceFile& file) {
  FileJson steps = FileJson::array({replacement(kSpaceText, " ")});
  if (file.byte_fallback) steps.push_back(FileJson{{"type", "ByteFallback"}});
  steps.push_back(FileJson{{"type", "Fuse"}});
  if (file.adds_prefix) {
    steps.push_back(FileJson{{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  return {{"type", "Sequence"}, {"decoders", std::move(steps)}};
}

// Sets `fault` if the file cannot say it.
FileJson json_of(const SentencePieceFile& file, std::string& fault) {
  Ids ids;
  FileJson vocabulary = FileJson::object(), added = FileJson::array();
  FileJson unknown = nullptr;
  for (std::size_t id = 0; id < file.pieces.size(); ++id) {
    const auto& piece = file.pieces[id];
    vocabulary[piece.text] = id;
    if (piece.type == PieceType::kNormal) ids.emplace(piece.text, static_cast<int32_t>(id));
    if (piece.type == PieceType::kUnknown) unknown = piece.text;
    if (piece.type != PieceType::kNormal && piece.type != PieceType::kByte) {
      added.push_back(added_token(piece, id));
    }
  }
  if (vocabulary.size() != file.pieces.size()) fault = "two of its pieces have one text";
  FileJson merges = FileJson::array();
  for (const auto& merge : merges_of(file, ids, fault)) {
    const auto left = merge.piece->substr(0, merge.left_bytes);
    merges.push_back(left + " " + merge.piece->substr(merge.left_bytes));
  }
  FileJson model{{"type", "BPE"},
                 {"dropout", nullptr},
                 {"unk_token", unknown},
                 {"continuing_subword_prefix", nullptr},
                 {"end_of_word_suffix", nullptr},
                 {"fuse_unk", true},
                 {"byte_fallback", file.byte_fallback},
                 {"ignore_merges", false},
                 {"vocab", std::move(vocabulary)},
                 {"merges", std::move(merges)}};
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", std::move(added)},
          {"normalizer", normalizer_of(file)},
          {"pre_tokenizer", nullptr},
          {"post_processor", nullptr},
          {"decoder", decoder_of(file)},
          {"model", std::move(model)}};
}

// Returns what differs between the two; empty if nothing does.
std::string difference(const SentencePieceFile& file, const Tokenizer& model,
                       const Tokenizer& made) {
  if (made.vocabulary() != model.vocabulary()) return "it would have another number of pieces";
  if (made.eos() != model.eos()) return "tokenizer_config.json has another end token";
  for (const auto& piece : file.pieces) {
    const bool is_text = piece.type == PieceType::kNormal || piece.type == PieceType::kUserDefined;
    // Alone, and where its first and last characters have neighbours.
    for (const auto& text : {piece.text, piece.text + piece.text, "x " + piece.text + " x"}) {
      if (is_text && made.encode(text) != model.encode(text)) {
        return fmt::format("the piece '{}' would become others", piece.text);
      }
    }
  }
  return "";
}

}  // namespace

MadeTokenizerJson make_tokenizer_json(const std::string& model, const std::string& config) {
  const auto tokenizer = read_sentencepiece(kTokenizerFile, model, "");
  const auto file = read_sentencepiece_file(model);
  if (!file) return {.content = "", .reason = "its file has an unusual form"};
  auto fault = fault_of(*file);
  if (!fault.empty()) return {.content = "", .reason = fault};
  const auto json = json_of(*file, fault);
  if (!fault.empty()) return {.content = "", .reason = fault};
  auto content = json.dump(1) + "\n";
  try {
    const auto made = read_json_tokenizer(kTokenizerJsonFile, content, config, "");
    fault = difference(*file, *tokenizer, *made);
  } catch (const DataError& error) {
    fault = error.what();  // of a tokenizer_config.json that does not fit
  }
  if (!fault.empty()) return {.content = "", .reason = fault};
  return {.content = std::move(content), .reason = ""};
}

}  // namespace farstep
