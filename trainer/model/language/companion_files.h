// What lies beside the weights of a language model: the tokenizer's files, and
// generation_config.json. Farstep carries them from folder to folder.
//
// Thread-safe: these functions only read files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/named_text.h"
#include "trainer/model/shape/hf_config.h"

namespace farstep {

// Returns the files of a model: those in the folder `model`, unless the dataset `data` has another
// vocabulary than that folder. Then they are the tokenizer's files in `data`; a SentencePiece model
// that is alone there gets a tokenizer_config.json, with which `transformers` encodes text as the
// dataset was. Either path may be empty. Throws DataError if a file cannot be read.
std::vector<NamedText> companion_files(const std::filesystem::path& model,
                                       const std::filesystem::path& data);

// Why files get no tokenizer.json, and which texts get other ids by the one that they get; both may
// be empty.
struct TokenizerJsonNotes {
  std::string reason, caution;
};

// Adds a tokenizer.json to files whose only vocabulary is a SentencePiece model. Returns the reason
// where there can be none (see make_tokenizer_json()); empty: the files have one, or no vocabulary.
// With that of a Unigram model, a tokenizer_config.json that names LLaMA's class names a general
// one instead, by which `transformers` takes the file as it is. Throws DataError for a malformed
// model.
TokenizerJsonNotes add_tokenizer_json(std::vector<NamedText>& files);

// Whether the file has a tokenizer's vocabulary.
bool has_vocabulary(const NamedText& file);

// Returns the files' names for messages: "tokenizer.json, generation_config.json", or "no
// tokenizer".
std::string names_text(const std::vector<NamedText>& files);

// Returns how many ids the tokenizer in the folder has: those of tokenizer.json, else those of
// tokenizer.model; nullopt if it has neither. Throws DataError for a malformed file.
std::optional<int64_t> tokenizer_ids(const std::filesystem::path& folder);

// The tokens that end and begin a document of a dataset; nullopt: unknown, or none.
struct DocumentTokens {
  std::optional<int64_t> eos, bos;
};

// Returns those of the dataset `data`, whose documents end with `eos`; bos is that of its
// tokenizer. Throws DataError for a malformed tokenizer.
DocumentTokens document_tokens(const std::filesystem::path& data, int64_t eos);

// Returns what config.json says of a model that learns from such documents, in sequences of
// `length` tokens. `start` is what the model's folder said; its ids stay unless the documents have
// another eos.
HfFacts trained_facts(const std::optional<HfFacts>& start, const DocumentTokens& tokens,
                      int64_t length);

// Replaces the eos_token_id of a generation_config.json among the files by `eos`, if it names
// others alone: no text would end by it. Leaves a file alone that is no JSON object.
void set_generation_ends(std::vector<NamedText>& files, const std::vector<int64_t>& eos);

}  // namespace farstep
