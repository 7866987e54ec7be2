// Text to token ids and back, by a SentencePiece model.
//
// All methods are const and may be called concurrently.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace farstep {

class Tokenizer {
 public:
  // Loads a SentencePiece model. Throws DataError if it is none, or has no eos piece.
  static Tokenizer load(const std::filesystem::path& model);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  // Ids of the text alone, without bos or eos. Invalid UTF-8 becomes U+FFFD.
  std::vector<int32_t> encode(std::string_view text) const;
  // The text of ids, each in [0, vocabulary()); bos and eos have none.
  std::string decode(std::span<const int32_t> ids) const;
  int64_t vocabulary() const;
  int32_t eos() const;

 private:
  struct Model;
  explicit Tokenizer(std::unique_ptr<Model> model);
  std::unique_ptr<Model> model_;
};

// Trains a byte-pair vocabulary of exactly `vocabulary` pieces on the lines that `next_line` gives
// until it gives nothing, and writes the model to `out`. unk, bos, eos are 0, 1, 2; newline and tab
// are pieces of their own; what has no piece falls back to bytes; nothing is normalised: decode()
// undoes encode() for all valid UTF-8 without U+2581. The same lines give the same file. Throws
// DataError if the text does not have, or needs more than, that many pieces.
void train_tokenizer(const std::function<std::optional<std::string>()>& next_line,
                     int64_t vocabulary, const std::filesystem::path& out);

}  // namespace farstep
