// Converts text to token ids and back by a SentencePiece model.
//
// All methods are const and thread-safe.
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
  // Loads a SentencePiece model. Throws DataError for another file or a model without an eos piece.
  static Tokenizer load(const std::filesystem::path& model);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  // Returns the ids of the text, without bos or eos. Invalid UTF-8 becomes U+FFFD.
  std::vector<int32_t> encode(std::string_view text) const;
  // Returns the text of ids, each in [0, vocabulary()); bos and eos have no text.
  std::string decode(std::span<const int32_t> ids) const;
  int64_t vocabulary() const;
  int32_t eos() const;
  // Returns the id that may begin a text; nullopt if the model has none.
  std::optional<int32_t> bos() const;

 private:
  struct Model;
  explicit Tokenizer(std::unique_ptr<Model> model);
  std::unique_ptr<Model> model_;
};

// Trains a byte-pair vocabulary of exactly `vocabulary` pieces on the lines from `next_line`, until
// it returns nullopt, and writes the model to `out`. unk, bos and eos are 0, 1 and 2. Newline and
// tab are pieces of their own. Other characters without a piece become bytes. Nothing is
// normalised, so decode() inverts encode() for all valid UTF-8 without U+2581. The same lines give
// the same file. Throws DataError if the text has too few pieces, or needs more.
void train_tokenizer(const std::function<std::optional<std::string>()>& next_line,
                     int64_t vocabulary, const std::filesystem::path& out);

}  // namespace farstep
