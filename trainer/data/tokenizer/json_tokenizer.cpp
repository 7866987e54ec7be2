// A text goes through four steps: added tokens are cut out, the rest is normalised and cut into
// words, and each word is encoded by the model.
#include "trainer/data/tokenizer/json_tokenizer.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "trainer/base/checksum.h"
#include "trainer/base/error.h"
#include "trainer/data/pieces/piece_encoder.h"
#include "trainer/data/pieces/unigram_encoder.h"
#include "trainer/data/text/unicode.h"
#include "trainer/data/text/utf8.h"
#include "trainer/data/tokenizer/tokenizer_files.h"
#include "trainer/data/tokenizer_json/added_tokens.h"
#include "trainer/data/tokenizer_json/byte_pair_model.h"
#include "trainer/data/tokenizer_json/byte_words.h"
#include "trainer/data/tokenizer_json/pre_tokenizer.h"
#include "trainer/data/tokenizer_json/text_frame.h"
#include "trainer/data/tokenizer_json/text_normalizer.h"
#include "trainer/data/tokenizer_json/unigram_model.h"

namespace farstep {

namespace {

constexpr std::string_view kSpace = "\xe2\x96\x81";  // U+2581, which stands for a space

// The end tokens of known models, where no tokenizer_config.json names another.
constexpr std::string_view kUsualEnds[] = {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>",
                                           "<|eos|>"};
constexpr std::string_view kUsualBegins[] = {"<|begin_of_text|>", "<s>", "<bos>", "<|bos|>"};

using Ids = std::unordered_map<std::string, int32_t>;

std::array<int32_t, 256> ids_of_bytes(const Ids& vocabulary, const JsonValue& json) {
  std::array<int32_t, 256> ids{};
  for (std::size_t byte = 0; byte < ids.size(); ++byte) {
    const auto token = fmt::format("<0x{:02X}>", byte);
    const auto found = vocabulary.find(token);
    if (found == vocabulary.end()) {
      json["byte_fallback"].refuse(fmt::format("the vocabulary has no {}", token));
    }
    ids[byte] = found->second;
  }
  return ids;
}

// Returns the encoder of a model whose words are characters.
std::unique_ptr<PieceEncoder> encoder_of(const BytePairModel& model, const JsonValue& json) {
  if (model.ignores_merges) json["ignore_merges"].refuse("is supported with ByteLevel only");
  auto made = std::make_unique<PieceEncoder>();
  auto& encoder = *made;
  for (const auto& [token, id] : model.vocabulary) encoder.add_piece(token, id);
  int32_t rank = 0;
  for (const auto& merge : model.merges) {
    encoder.set_merge(merge.left, merge.right, {rank++, merge.merged});
  }
  if (model.byte_fallback) encoder.set_bytes(ids_of_bytes(model.vocabulary, json));
  if (model.unknown) encoder.set_unknown(*model.unknown, model.fuses_unknown);
  return made;
}

// Returns the encoder of a model with scores; `ids` are those of its pieces.
std::unique_ptr<UnigramEncoder> encoder_of(const UnigramModel& model, const Ids& ids,
                                           const JsonValue& json) {
  auto made = std::make_unique<UnigramEncoder>();
  auto& encoder = *made;
  int32_t id = 0;
  for (const auto& piece : model.pieces) {
    if (!piece.text.empty()) encoder.add_piece(piece.text, id, piece.score);
    ++id;
  }
  encoder.set_unknown(model.unknown_score(), model.unknown);
  if (model.byte_fallback) encoder.set_bytes(ids_of_bytes(ids, json));
  return made;
}

// Returns the text of a token of characters: a byte, or the token with spaces.
std::string text_of_token(const std::string& token, bool byte_fallback) {
  unsigned byte = 0;
  if (byte_fallback && token.size() == 6 && token.starts_with("<0x") && token.ends_with('>') &&
      std::sscanf(token.c_str(), "<0x%2X>", &byte) == 1) {
    return {static_cast<char>(byte)};
  }
  std::string text = token;
  for (auto at = text.find(kSpace); at != std::string::npos; at = text.find(kSpace, at)) {
    text.replace(at, kSpace.size(), " ");
  }
  return text;
}

class JsonTokenizer : public Tokenizer {
 public:
  JsonTokenizer(const nlohmann::json& json, const std::filesystem::path& path,
                const std::string& content, SpecialTokens specials)
      : JsonTokenizer(JsonValue(json, ""), content, specials) {
    path_ = path.string();
  }

  // Returns the id of a token by its content.
  std::optional<int32_t> id_of(const std::string& token) const {
    const auto found = ids_.find(token);
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  }
  // `adds_bos`: what goes before a text; nullopt: what the post-processor says.
  void set_ends(int32_t eos, std::optional<int32_t> bos, std::optional<bool> adds_bos) {
    facts_.eos = eos;
    facts_.bos = bos;
    if (adds_bos) facts_.opening.clear();
    if (adds_bos == true && bos) facts_.opening.push_back(*bos);
    for (const int32_t id : {eos, bos.value_or(eos)}) {
      is_special_[static_cast<std::size_t>(id)] = true;
      if (specials_ == SpecialTokens::kText) added_.leave(id);
    }
    if (specials_ == SpecialTokens::kText) remove_special_pieces();
  }

  bool may_cut(std::string_view text, std::size_t place) const override {
    // A part that begins with a space gets no other one before it.
    const bool is_place = text[place] == ' ' || (text[place] == '\n' && words_ && !prepends_);
    if (!may_cut_ || !is_place) return false;
    char32_t before = character_at(text, character_before(text, place));
    if (is_letter(before) && !normalizer_.is_identity()) before = normal_before(text, place);
    return is_letter(before) && (words_ || encoder_->may_cut(before, space_));
  }

  std::string decode(std::span<const int32_t> ids) const override {
    std::string bytes;
    for (const int32_t id : ids) {
      FARSTEP_CHECK(id >= 0 && id < vocabulary(), "token id {} of a vocabulary of {}", id,
                    vocabulary());
      if (!is_special_[static_cast<std::size_t>(id)]) bytes += texts_[static_cast<std::size_t>(id)];
    }
    if (!words_ && prepends_ && bytes.starts_with(' ')) bytes.erase(0, 1);
    return with_replaced_bytes(bytes);
  }

  int64_t names_left_as_text() const override { return names_left_; }

 private:
  JsonTokenizer(const JsonValue& json, const std::string& content, SpecialTokens specials)
      : normalizer_(json["normalizer"]),
        pre_tokenizer_(json["pre_tokenizer"]),
        added_(json["added_tokens"], normalizer_),
        specials_(specials),
        prepends_(normalizer_.prepends() || pre_tokenizer_.prepends()) {
    if (specials == SpecialTokens::kText) added_.leave_special();
    const auto model = json["model"];
    const bool is_unigram = !model["type"].is_null() && model["type"].text() == "Unigram";
    const bool byte_fallback = is_unigram ? read_unigram(model) : read_byte_pairs(model);
    list_tokens(json["added_tokens"], byte_fallback);
    read_opening(json["post_processor"]);
    may_cut_ = added_.may_cut() && normalizer_.may_cut() && pre_tokenizer_.may_cut() &&
               (words_ ? keeps_space() : set_space());
    facts_.digest = checksum(std::as_bytes(std::span(content)));
  }

  // These read the model and its vocabulary, and return whether it has byte fallback.
  bool read_byte_pairs(const JsonValue& json) {
    BytePairModel model(json);
    if (pre_tokenizer_.by_bytes()) {
      words_.emplace(model);
    } else {
      encoder_ = encoder_of(model, json);
    }
    ids_ = std::move(model.vocabulary);
    return model.byte_fallback;
  }
  bool read_unigram(const JsonValue& json) {
    if (pre_tokenizer_.by_bytes()) json.refuse("Unigram is supported without ByteLevel only");
    const UnigramModel model(json);
    for (const auto& piece : model.pieces) {
      ids_[piece.text] = static_cast<int32_t>(&piece - model.pieces.data());
    }
    ids_.erase("");  // it can be nowhere
    auto encoder = encoder_of(model, ids_, json);
    unigram_ = encoder.get();
    encoder_ = std::move(encoder);
    return model.byte_fallback;
  }

  // A Unigram vocabulary has the names of special tokens among its pieces. Text of a longer piece
  // is cut in other ways without it. A character that is a piece like others, and that the user
  // takes for an end token, stays: without it the text would have no token there.
  void remove_special_pieces() {
    if (unigram_ == nullptr) return;
    const auto& added = added_.all();
    for (const auto& [token, id] : ids_) {
      if (!is_special_[static_cast<std::size_t>(id)]) continue;
      const bool is_declared = std::ranges::any_of(
          added, [&, own = id](const auto& each) { return each.special && each.id == own; });
      if (is_declared || token.size() > character_bytes(token[0])) unigram_->remove_piece(token);
    }
  }

  // Returns what the character before a cut has become; 0 if it has become nothing. It depends on
  // its word at most.
  char32_t normal_before(std::string_view text, std::size_t place) const {
    const auto space = text.find_last_of(" \n", place - 1);
    const auto begin = space == text.npos ? 0 : space + 1;
    const auto word = normal_text(text.substr(begin, place - begin), false);
    return word.empty() ? U'\0' : character_at(word, character_before(word, word.size()));
  }

  // Normalises a text, whose fault is the file's.
  std::string normal_text(std::string_view text, bool begins_text) const {
    try {
      return normalizer_(text, begins_text);
    } catch (const DataError& error) {
      throw DataError(fmt::format("{}: {}", path_, error.what()));
    }
  }

  // Whether the places of cuts by bytes are in the normalised text too.
  bool keeps_space() const {
    return normalizer_(" ", false) == " " && normalizer_("\n", false) == "\n";
  }

  // Sets the character that a space becomes; returns false if it becomes several.
  bool set_space() {
    Words words;
    const auto space = normalizer_(" ", false);
    if (space.empty()) return false;
    pre_tokenizer_.split(space, false, words);
    if (words.words.size() != 1 || words.words[0].size() != character_bytes(words.words[0][0])) {
      return false;
    }
    space_ = character_at(words.words[0], 0);
    return true;
  }

  void list_tokens(const JsonValue& added, bool byte_fallback) {
    for (const auto& token : added_.all()) {
      // The library would number it anew.
      const auto [place, is_new] = ids_.emplace(token.content, token.id);
      if (!is_new && place->second != token.id) {
        added.refuse(fmt::format("'{}' has the id {}, but {} in the vocabulary", token.content,
                                 token.id, place->second));
      }
    }
    int32_t last = -1;
    for (const auto& [token, id] : ids_) last = std::max(last, id);
    // A file of a few bytes could otherwise ask for a list of any length.
    if (static_cast<std::size_t>(last) > 64 * ids_.size() + 4096) {
      added.refuse(fmt::format("the id {} is far beyond the {} tokens", last, ids_.size()));
    }
    facts_.vocabulary = last + 1;
    texts_.resize(static_cast<std::size_t>(facts_.vocabulary));
    is_special_.resize(texts_.size());
    for (const auto& [token, id] : ids_) {
      texts_[static_cast<std::size_t>(id)] =
          words_ ? bytes_of_token(token) : text_of_token(token, byte_fallback);
    }
    for (const auto& token : added_.all()) {
      is_special_[static_cast<std::size_t>(token.id)] = token.special;
    }
  }

  void read_opening(const JsonValue& json) {
    facts_.opening = ids_before_text(json);
    for (const int32_t id : facts_.opening) {
      if (id >= vocabulary()) json.refuse(fmt::format("there is no token {}", id));
    }
  }

  void encode_valid(std::string_view text, bool begins_text,
                    std::vector<int32_t>& ids) const override {
    WordCaches::Lease cache(caches_);
    Words words;
    std::vector<TextPart> parts, normal_parts;
    int64_t names_left = added_.split(text, false, parts);
    for (const auto& part : parts) {
      if (part.token != TextPart::kNoToken) {
        ids.push_back(part.token);
        continue;
      }
      const bool is_first = part.text.data() == text.data();
      const auto normal = normalizer_.is_identity()
                              ? std::string()
                              : normal_text(part.text, begins_text || !is_first);
      const auto view = normalizer_.is_identity() ? part.text : std::string_view(normal);
      names_left += added_.split(view, true, normal_parts);
      for (const auto& normal_part : normal_parts) {
        if (normal_part.token != TextPart::kNoToken) {
          ids.push_back(normal_part.token);
          continue;
        }
        const bool begins = begins_text && is_first && normal_part.text.data() == view.data();
        pre_tokenizer_.split(normal_part.text, begins, words);
        for (const auto word : words.words) {
          if (words_) {
            words_->encode(word, *cache, ids);
          } else {
            encoder_->encode(word, *cache, ids);
          }
        }
      }
    }
    if (names_left > 0) names_left_ += names_left;
  }

  std::string path_;
  TextNormalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  AddedTokens added_;
  SpecialTokens specials_;
  bool prepends_;
  // One of the two encodes.
  std::optional<ByteWords> words_;
  std::unique_ptr<PartEncoder> encoder_;
  UnigramEncoder* unigram_ = nullptr;  // the encoder, if it is one
  bool may_cut_ = false;
  char32_t space_ = U' ';  // what a space becomes
  Ids ids_;
  std::vector<std::string> texts_;  // by id, as bytes
  std::vector<bool> is_special_;    // by id
  mutable WordCaches caches_;
  mutable std::atomic<int64_t> names_left_ = 0;
};

std::optional<int32_t> first_known(const JsonTokenizer& tokenizer,
                                   std::span<const std::string_view> names) {
  for (const auto name : names) {
    if (const auto id = tokenizer.id_of(std::string(name))) return id;
  }
  return std::nullopt;
}

// What the user says counts first, then the file beside the tokenizer, then the usual names.
void find_ends(const std::filesystem::path& path, const std::string& config_text,
               const std::string& end_token, JsonTokenizer& tokenizer) {
  const auto config_path = (path.parent_path() / kTokenizerConfigFile).string();
  const auto config = read_tokenizer_config(config_text, config_path);
  const auto end = end_token.empty() ? config.eos : std::optional(end_token);
  const auto id = end ? tokenizer.id_of(*end) : first_known(tokenizer, kUsualEnds);
  if (!id) {
    throw DataError(fmt::format(
        "{}: {}; name the token that ends a document as eos_token in {}, or to `farstep "
        "tokenize` with --end-token",
        path.string(),
        end ? fmt::format("there is no token '{}'{}", *end,
                          end_token.empty() ? ", which " + config_path + " names" : "")
            : "does not say which token ends a document",
        config_path));
  }
  tokenizer.set_ends(
      *id, config.bos ? tokenizer.id_of(*config.bos) : first_known(tokenizer, kUsualBegins),
      config.adds_bos);
}

// Of an exception of the library only that of broken JSON has the place.
uint64_t place_of_fault(const std::string& content) {
  std::istringstream read(content);
  const auto json = nlohmann::json::parse(read, nullptr, /*allow_exceptions=*/false);
  FARSTEP_CHECK(json.is_discarded(), "the JSON has no fault");
  read.clear();  // at the end there is no place otherwise
  return static_cast<uint64_t>(read.tellg());
}

}  // namespace

std::unique_ptr<const Tokenizer> read_json_tokenizer(const std::filesystem::path& path,
                                                     const std::string& content,
                                                     const std::string& config,
                                                     const std::string& end_token,
                                                     SpecialTokens specials) {
  const auto json = nlohmann::json::parse(content, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    throw DataError(path, place_of_fault(content),
                    "the JSON is broken here, or a number is too large: copy or make the file "
                    "again");
  }
  if (!json.contains("model")) {
    throw DataError(
        fmt::format("{}: no tokenizer.json: it has no member \"model\"", path.string()));
  }
  std::unique_ptr<JsonTokenizer> tokenizer;
  try {
    tokenizer = std::make_unique<JsonTokenizer>(json, path, content, specials);
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", path.string(), error.what()));
  }
  find_ends(path, config, end_token, *tokenizer);
  return tokenizer;
}

}  // namespace farstep
