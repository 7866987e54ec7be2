// The library encodes a text in one piece, and looks up every pair of neighbours in a hash table of
// strings. A byte-pair model without normalisation becomes a PieceEncoder, which has the same
// result.
#include "trainer/data/tokenizer/sentencepiece_tokenizer.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <utility>

#include "trainer/base/checksum.h"
#include "trainer/base/error.h"
#include "trainer/data/pieces/piece_encoder.h"
#include "trainer/data/text/utf8.h"
#include "trainer/data/tokenizer/sentencepiece_file.h"

namespace farstep {

namespace {

constexpr std::string_view kSpaceBytes = "\xe2\x96\x81";
constexpr char32_t kSpaceSign = 0x2581;  // which stands for a space

// A control piece that is in the text, say. The library takes such a model, and fails at some
// texts.
constexpr const char* kDamaged =
    "the SentencePiece model cannot encode or decode this text: it is damaged, copy or make it "
    "again";

// Reads the model in `content`. Returns the error's text, which is empty for a valid model.
// SentencePiece returns most errors, but its trie throws at an empty piece.
std::string parse(const std::string& content, sentencepiece::SentencePieceProcessor& processor) {
  try {
    const auto status = processor.LoadFromSerializedProto(content);
    return status.ok() ? std::string() : status.ToString();
  } catch (const std::exception& error) {
    return error.what();
  }
}

// Adds every pair of symbols that makes the piece.
void add_merges(const std::string& piece, PairTable::Merge merge,
                const std::unordered_map<std::string, int32_t>& ids, PieceEncoder& encoder) {
  const auto symbol = [&](const std::string& part) -> std::optional<int32_t> {
    if (is_one_character(part)) return encoder.symbol_of(character_at(part, 0));
    const auto found = ids.find(part);
    return found == ids.end() ? std::nullopt : std::optional(found->second);
  };
  for (auto cut = character_bytes(piece[0]); cut < piece.size();
       cut += character_bytes(piece[cut])) {
    const auto left = symbol(piece.substr(0, cut)), right = symbol(piece.substr(cut));
    if (left && right) encoder.set_merge(*left, *right, merge);
  }
}

// The best score is merged first, so a merge's rank is its score's place among all scores.
void add_all_merges(const SentencePieceFile& file, PieceEncoder& encoder) {
  std::vector<float> scores;
  std::unordered_map<std::string, int32_t> ids;
  for (std::size_t id = 0; id < file.pieces.size(); ++id) {
    if (file.pieces[id].type != PieceType::kNormal) continue;
    scores.push_back(file.pieces[id].score);
    ids.emplace(file.pieces[id].text, static_cast<int32_t>(id));
  }
  std::sort(scores.begin(), scores.end(), std::greater<>());
  scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
  for (const auto& [text, id] : ids) {
    const auto rank =
        std::lower_bound(scores.begin(), scores.end(),
                         file.pieces[static_cast<std::size_t>(id)].score, std::greater<>()) -
        scores.begin();
    add_merges(text, {static_cast<int32_t>(rank), id}, ids, encoder);
  }
}

class SentencePieceTokenizer : public Tokenizer {
 public:
  SentencePieceTokenizer(std::unique_ptr<sentencepiece::SentencePieceProcessor> processor,
                         const std::string& content, bool adds_bos)
      : processor_(std::move(processor)) {
    facts_.vocabulary = processor_->GetPieceSize();
    facts_.eos = processor_->eos_id();
    if (processor_->bos_id() >= 0) facts_.bos = processor_->bos_id();
    if (adds_bos && facts_.bos) facts_.opening.push_back(*facts_.bos);
    facts_.digest = checksum(std::as_bytes(std::span(content)));
    const auto file = read_sentencepiece_file(content);
    if (file && file->pieces.size() == static_cast<std::size_t>(facts_.vocabulary) &&
        file->is_plain()) {
      make_encoder(*file);
    }
  }

  bool may_cut(std::string_view text, std::size_t place) const override {
    if (!encoder_) return false;
    const auto normal = [&](std::size_t at) {
      const char32_t character = character_at(text, at);
      return character == U' ' ? kSpaceSign : character;
    };
    return encoder_->may_cut(normal(character_before(text, place)), normal(place));
  }

  // The processor is const after loading, so that many threads decode with one model.
  std::string decode(std::span<const int32_t> ids) const override {
    for (const int32_t id : ids) {
      FARSTEP_CHECK(id >= 0 && id < vocabulary(), "token id {} of a vocabulary of {}", id,
                    vocabulary());
    }
    std::string text;
    const auto status = processor_->Decode(std::vector<int>(ids.begin(), ids.end()), &text);
    if (!status.ok()) throw DataError(kDamaged);
    return text;
  }

 private:
  void make_encoder(const SentencePieceFile& file) {
    const auto bytes = file.byte_fallback ? file.byte_ids() : std::nullopt;
    if (file.byte_fallback && !bytes) return;
    encoder_.emplace();
    adds_prefix_ = file.adds_prefix;
    for (std::size_t id = 0; id < file.pieces.size(); ++id) {
      const auto& piece = file.pieces[id];
      if (piece.type == PieceType::kNormal) {
        encoder_->add_piece(piece.text, static_cast<int32_t>(id));
      } else if (piece.type == PieceType::kUserDefined) {
        encoder_->add_literal(piece.text, static_cast<int32_t>(id));
      }
    }
    add_all_merges(file, *encoder_);
    if (bytes) {
      encoder_->set_bytes(*bytes);
    } else {
      encoder_->set_unknown(processor_->unk_id(), true);
    }
  }

  void encode_valid(std::string_view text, bool begins_text,
                    std::vector<int32_t>& ids) const override {
    if (text.empty()) return;
    if (!encoder_) return encode_by_library(text, ids);
    std::string normal;
    normal.reserve(text.size() + text.size() / 2);
    if (begins_text && adds_prefix_) normal += kSpaceBytes;
    for (const char byte : text) {
      if (byte == ' ') {
        normal += kSpaceBytes;
      } else {
        normal += byte;
      }
    }
    WordCaches::Lease cache(caches_);
    encoder_->encode(normal, *cache, ids);
  }

  void encode_by_library(std::string_view text, std::vector<int32_t>& ids) const {
    std::vector<int> encoded;
    const auto status = processor_->Encode({text.data(), text.size()}, &encoded);
    if (!status.ok()) throw DataError(kDamaged);
    ids.insert(ids.end(), encoded.begin(), encoded.end());
  }

  std::unique_ptr<sentencepiece::SentencePieceProcessor> processor_;
  std::optional<PieceEncoder> encoder_;  // of a plain model
  bool adds_prefix_ = false;
  mutable WordCaches caches_;
};

}  // namespace

std::unique_ptr<const Tokenizer> read_sentencepiece(const std::filesystem::path& path,
                                                    const std::string& content,
                                                    const std::string& end_token, bool adds_bos) {
  auto processor = std::make_unique<sentencepiece::SentencePieceProcessor>();
  if (!parse(content, *processor).empty()) {
    throw DataError(fmt::format(
        "{}: no tokenizer: neither a SentencePiece model nor a tokenizer.json", path.string()));
  }
  const int eos = processor->eos_id();
  if (eos < 0) {
    throw DataError(fmt::format("{}: the model has no eos piece, which must end every document",
                                path.string()));
  }
  if (!end_token.empty() && processor->IdToPiece(eos) != end_token) {
    throw DataError(fmt::format("{}: the model's end token is '{}', not '{}'", path.string(),
                                processor->IdToPiece(eos), end_token));
  }
  return std::make_unique<SentencePieceTokenizer>(std::move(processor), content, adds_bos);
}

}  // namespace farstep
