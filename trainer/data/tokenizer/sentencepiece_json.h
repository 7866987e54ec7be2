// A SentencePiece model as a tokenizer.json, for programs that read only that.
//
// Pure functions; thread-safe.
#pragma once

#include <string>

namespace farstep {

// Its content, or the reason why there is none. `caution` says which texts get other ids by the
// content; empty: none.
struct MadeTokenizerJson {
  std::string content, reason, caution;
};

// Returns the tokenizer.json by which Hugging Face's `tokenizers` gives the ids of the model, the
// content of a SentencePiece file; `config` is the content of the tokenizer_config.json beside it,
// empty if there is none. Of two equally likely ways to cut a text, a Unigram model may take one
// and its tokenizer.json the other. There is none for a byte-pair model that normalises text, for
// models of words and of characters, nor where the file would have other ids. Every piece is
// encoded with both to be sure. Throws DataError if `model` is no SentencePiece model.
MadeTokenizerJson make_tokenizer_json(const std::string& model, const std::string& config);

// Returns the tokenizer_config.json with which `transformers` encodes texts by a SentencePiece
// model as Farstep does. `adds_bos`: bos goes before each text. Throws DataError if `model` is no
// SentencePiece model.
std::string sentencepiece_config(const std::string& model, bool adds_bos);

}  // namespace farstep
