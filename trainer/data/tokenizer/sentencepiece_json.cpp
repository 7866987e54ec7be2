// SentencePiece has flags that change a text before pieces are found. They become steps of the
// normalizer: first rules, then white space, then the space before the text.
#include "trainer/data/tokenizer/sentencepiece_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/data/tokenizer/json_tokenizer.h"
#include "trainer/data/tokenizer/model_json.h"
#include "trainer/data/tokenizer/sentencepiece_file.h"
#include "trainer/data/tokenizer/sentencepiece_tokenizer.h"
#include "trainer/data/tokenizer/tokenizer_files.h"
#include "trainer/data/tokenizer_json/base64.h"
#include "trainer/data/tokenizer_json/character_map.h"
#include "trainer/data/tokenizer_json/text_frame.h"

namespace farstep {

namespace {

using FileJson = nlohmann::json;

constexpr const char* kSpaceText = "\xe2\x96\x81";  // U+2581, which stands for a space

// What tokenizer.json has no words for; empty if there is nothing of it.
std::string fault_of(const SentencePieceFile& file) {
  if (!file.is_unigram() && !file.is_byte_pairs()) {
    return "it is no byte-pair and no Unigram model";
  }
  if (!file.escapes_whitespace || file.whitespace_is_suffix) {
    return "its pieces have spaces in another form";
  }
  const auto is_finite = [](const auto& piece) { return std::isfinite(piece.score); };
  if (!file.has_usual_pieces() || !std::ranges::all_of(file.pieces, is_finite)) {
    return "it has unusual pieces";
  }
  if (!file.is_unigram() && !file.is_plain()) return "it changes text before it finds pieces";
  if (file.byte_fallback && !file.byte_ids()) return "it lacks pieces of bytes";
  std::set<std::string_view> texts;
  for (const auto& piece : file.pieces) texts.insert(piece.text);
  if (texts.size() != file.pieces.size()) return "two of its pieces have one text";
  const auto is_fixed = [](const auto& piece) { return piece.type == PieceType::kUserDefined; };
  if (std::ranges::none_of(file.pieces, is_fixed)) return "";
  if (!file.is_unigram() && file.adds_prefix) {
    return "it puts a space before a text and has fixed pieces, which would get one too";
  }
  if (!file.character_map.empty() || file.removes_whitespace) {
    return "it normalises text, but not its fixed pieces";
  }
  return "";
}

FileJson added_token(const SentencePieceFile::Piece& piece, std::size_t id) {
  const bool is_fixed = piece.type == PieceType::kUserDefined;
  // Fixed pieces are looked for in the text with its spaces replaced.
  return {{"id", id},        {"content", piece.text},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", is_fixed}, {"special", !is_fixed}};
}

FileJson replacement(const char* from, const char* to, const char* kind = "String") {
  return {{"type", "Replace"}, {"pattern", {{kind, from}}}, {"content", to}};
}

FileJson normalizer_of(const SentencePieceFile& file) {
  FileJson steps = FileJson::array();
  if (!file.character_map.empty()) {
    steps.push_back(FileJson{{"type", "Precompiled"},
                             {"precompiled_charsmap", base64_text(file.character_map)}});
  }
  if (file.removes_whitespace) {
    // At the end also the sign itself, which looks like a space there.
    steps.push_back(replacement("\\A +|[ \\x{2581}]+\\z", "", "Regex"));
    steps.push_back(replacement(" {2,}", " ", "Regex"));
  }
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

FileJson json_of(const SentencePieceFile& file, ModelJson model) {
  FileJson added = FileJson::array();
  for (std::size_t id = 0; id < file.pieces.size(); ++id) {
    const auto& piece = file.pieces[id];
    // A Unigram model finds its fixed pieces by their scores.
    const bool is_found_first =
        piece.type == PieceType::kUserDefined
            ? !file.is_unigram()
            : piece.type != PieceType::kNormal && piece.type != PieceType::kByte;
    if (is_found_first) added.push_back(added_token(piece, id));
  }
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", std::move(added)},
          {"normalizer", normalizer_of(file)},
          {"pre_tokenizer", std::move(model.pre_tokenizer)},
          {"post_processor", nullptr},
          {"decoder", decoder_of(file)},
          {"model", std::move(model.model)}};
}

// Puts bos before a text, for programs that take no word of another file.
FileJson post_processor_of(const std::string& bos, int32_t id) {
  const auto token = [&](int type) -> FileJson {
    return {{"SpecialToken", {{"id", bos}, {"type_id", type}}}};
  };
  const auto text = [](const char* name, int type) -> FileJson {
    return {{"Sequence", {{"id", name}, {"type_id", type}}}};
  };
  return {{"type", "TemplateProcessing"},
          {"single", FileJson::array({token(0), text("A", 0)})},
          {"pair", FileJson::array({token(0), text("A", 0), token(1), text("B", 1)})},
          {"special_tokens",
           {{bos, {{"id", bos}, {"ids", {id}}, {"tokens", FileJson::array({bos})}}}}}};
}

// Of two equally likely ways to cut a text, rounding makes SentencePiece take one or the other.
bool are_equally_likely(const SentencePieceFile& file, const std::vector<int32_t>& some,
                        const std::vector<int32_t>& others) {
  constexpr double kRounding = 1e-5;  // of sums of fp32
  const auto sum = [&](const std::vector<int32_t>& ids) {
    double sum = 0;
    for (const int32_t id : ids) sum += file.pieces[static_cast<std::size_t>(id)].score;
    return sum;
  };
  return file.is_unigram() && std::abs(sum(some) - sum(others)) <= kRounding * std::abs(sum(some));
}

// Returns what differs between the two; empty if nothing does. Where `map` gives the two another
// text, their ids are not compared.
std::string difference(const SentencePieceFile& file, const std::optional<CharacterMap>& map,
                       const Tokenizer& model, const Tokenizer& made) {
  if (made.vocabulary() != model.vocabulary()) return "it would have another number of pieces";
  if (made.eos() != model.eos()) return "tokenizer_config.json has another end token";
  for (const auto& piece : file.pieces) {
    // Alone, and where its first and last characters have neighbours. Names are text too.
    for (const auto& text : {piece.text, piece.text + piece.text, "x " + piece.text + " x"}) {
      if (map && map->by_graphemes(text) != map->by_longest_rules(text)) continue;
      const auto ids = made.encode(text), expected = model.encode(text);
      if (ids == expected) continue;
      if (model.decode(ids) != model.decode(expected) || !are_equally_likely(file, ids, expected)) {
        return fmt::format("the piece '{}' would become others", piece.text);
      }
    }
  }
  return "";
}

// Says which rules of the table `tokenizers` applies in another way; empty if there are none.
std::string caution_about(const CharacterMap& map) {
  std::string shortest;
  std::size_t rules = 0, others = 0;
  map.for_each_rule([&](const std::string& text, std::string_view value) {
    ++rules;
    if (map.by_graphemes(text) == value) return;
    ++others;
    if (shortest.empty() || text.size() < shortest.size()) shortest = text;
  });
  if (others == 0) return "";
  return fmt::format(
      "`tokenizers` applies the model's rules to whole graphemes, where {} of its {} rules do not "
      "hold: '{}' becomes '{}' there, not '{}'. Rare characters with marks get other ids",
      others, rules, shortest, map.by_graphemes(shortest), map.by_longest_rules(shortest));
}

}  // namespace

MadeTokenizerJson make_tokenizer_json(const std::string& model, const std::string& config) {
  const auto refusal = [](std::string reason) {
    return MadeTokenizerJson{.content = "", .reason = std::move(reason), .caution = ""};
  };
  const auto tokenizer = read_sentencepiece(kTokenizerFile, model, "");
  const auto file = read_sentencepiece_file(model);
  if (!file) return refusal("its file has an unusual form");
  if (auto fault = fault_of(*file); !fault.empty()) return refusal(std::move(fault));
  auto parts = file->is_unigram() ? unigram_json(*file) : byte_pair_json(*file);
  if (!parts.fault.empty()) return refusal(std::move(parts.fault));
  auto json = json_of(*file, std::move(parts));
  try {
    const auto bos = tokenizer->bos();
    if (bos && read_tokenizer_config(config, std::string(kTokenizerConfigFile)).adds_bos == true) {
      json["post_processor"] =
          post_processor_of(file->pieces.at(static_cast<std::size_t>(*bos)).text, *bos);
    }
    auto content = json.dump(1) + "\n";
    std::optional<CharacterMap> map;
    if (!file->character_map.empty()) map.emplace(file->character_map);
    const auto made =
        read_json_tokenizer(kTokenizerJsonFile, content, config, "", SpecialTokens::kText);
    if (auto fault = difference(*file, map, *tokenizer, *made); !fault.empty()) {
      return refusal(std::move(fault));
    }
    return {.content = std::move(content),
            .reason = "",
            .caution = map ? caution_about(*map) : std::string()};
  } catch (const DataError& error) {
    return refusal(error.what());  // of a tokenizer_config.json that does not fit, say
  }
}

// The model itself does not say how its user begins a text. Without this file `transformers` puts
// bos and a space before it.
std::string sentencepiece_config(const std::string& model, bool adds_bos) {
  const auto tokenizer = read_sentencepiece(kTokenizerFile, model, "");
  auto ids = tokenizer->encode("b");
  const auto second = tokenizer->encode("a");
  ids.insert(ids.end(), second.begin(), second.end());
  const bool adds_space = tokenizer->decode(ids) == "b a";
  FileJson config{{"tokenizer_class", "LlamaTokenizer"}, {"legacy", false},
                  {"add_bos_token", adds_bos},           {"add_eos_token", false},
                  {"add_prefix_space", adds_space},      {"clean_up_tokenization_spaces", false}};
  if (const auto file = read_sentencepiece_file(model)) {
    const auto piece = [&](int32_t id) {
      return file->pieces.at(static_cast<std::size_t>(id)).text;
    };
    config["eos_token"] = piece(tokenizer->eos());
    if (tokenizer->bos()) config["bos_token"] = piece(*tokenizer->bos());
  }
  return config.dump(2) + "\n";
}

}  // namespace farstep
