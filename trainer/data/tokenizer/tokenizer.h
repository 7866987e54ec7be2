// Converts text to token ids and back.
//
// Two kinds of tokenizer: a SentencePiece model, and a tokenizer.json of Hugging Face. Their ids
// are those of Python's `sentencepiece` and `tokenizers`. All methods are const and thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace farstep {

// What the name of a special token, "</s>" say, becomes where a text has it: text like any other,
// or that token. The texts of others must not end a document.
enum class SpecialTokens { kText, kTokens };

inline std::span<const std::string_view> enum_names(SpecialTokens) {
  static constexpr std::string_view kNames[] = {"text", "tokens"};
  return kNames;
}

class Tokenizer {
 public:
  // Loads a tokenizer from its file, or from a folder that has one: tokenizer.json, else
  // tokenizer.model. `end_token` names the token that ends a document. If it is empty, a
  // SentencePiece model has its own. For a tokenizer.json the tokenizer_config.json beside it says
  // so, or else a token with a usual name. The tokens that end and begin a document are special
  // too. A SentencePiece model leaves names as text in any case. Throws DataError for a file that
  // is no tokenizer, has what is not supported, or no end token.
  static std::unique_ptr<const Tokenizer> load(const std::filesystem::path& path,
                                               const std::string& end_token = "",
                                               SpecialTokens specials = SpecialTokens::kText);
  virtual ~Tokenizer() = default;

  // Returns the ids of the text alone, without opening() and eos. Invalid UTF-8 becomes U+FFFD.
  // Throws DataError for a character that the tokenizer has no token for, and where its normalizer
  // makes far more of a text than any language needs.
  std::vector<int32_t> encode(std::string_view text) const;
  // Appends the ids of a part of a text; `begins_text`: it is the first part. If the text is cut at
  // places that may_cut() allows, the parts have the ids of the whole. Errors are encode()'s.
  void encode_part(std::string_view part, bool begins_text, std::vector<int32_t>& ids) const;
  // The same with opening() before the text, unless it begins with these tokens itself, as a chat's
  // text may.
  std::vector<int32_t> encode_opened(std::string_view text) const;
  void encode_part_opened(std::string_view part, bool begins_text, std::vector<int32_t>& ids) const;
  // Whether the valid text may be cut at `place`, in [1, text.size()), where a character begins.
  virtual bool may_cut(std::string_view text, std::size_t place) const = 0;
  // Returns the text of ids, each in [0, vocabulary()). Special tokens have no text; bytes that are
  // no characters become U+FFFD.
  virtual std::string decode(std::span<const int32_t> ids) const = 0;

  // Returns a number above every id.
  int64_t vocabulary() const { return facts_.vocabulary; }
  // Returns the token that ends a document.
  int32_t eos() const { return facts_.eos; }
  // Returns the token that begins a document, if the tokenizer names one.
  std::optional<int32_t> bos() const { return facts_.bos; }
  // Returns the tokens that go before each text: bos alone, or none, in nearly all tokenizers. They
  // are those of `transformers`: a tokenizer.json's post-processor says so, or add_bos_token of the
  // tokenizer_config.json beside it, or the class that this names.
  const std::vector<int32_t>& opening() const { return facts_.opening; }
  // Returns how many names of special tokens have become text so far, where they could be tokens.
  virtual int64_t names_left_as_text() const { return 0; }
  // Returns the checksum of the tokenizer's file.
  uint64_t digest() const { return facts_.digest; }

 protected:
  struct Facts {
    int64_t vocabulary = 0;
    int32_t eos = 0;
    std::optional<int32_t> bos;
    std::vector<int32_t> opening = {};
    uint64_t digest = 0;
  };

  Facts facts_;

 private:
  // Appends the ids of valid UTF-8.
  virtual void encode_valid(std::string_view text, bool begins_text,
                            std::vector<int32_t>& ids) const = 0;
};

}  // namespace farstep
