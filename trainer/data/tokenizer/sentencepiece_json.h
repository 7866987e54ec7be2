// A SentencePiece model as a tokenizer.json, for programs that read only that.
//
// Pure functions; thread-safe.
#pragma once

#include <string>

namespace farstep {

// Its content, or the reason why there is none.
struct MadeTokenizerJson {
  std::string content, reason;
};

// Returns the tokenizer.json by which Hugging Face's `tokenizers` gives the ids of the model, the
// content of a SentencePiece file; `config` is the content of the tokenizer_config.json beside it,
// empty if there is none. As in all such files, the names of control pieces, "</s>" say, become
// these pieces in a text. There is none for a model that normalises text or is no byte-pair model,
// nor where the file would have other ids. Every piece is encoded with both to be sure. Throws
// DataError if `model` is no SentencePiece model.
MadeTokenizerJson make_tokenizer_json(const std::string& model, const std::string& config);

}  // namespace farstep
