// A SentencePiece model as a Tokenizer. Only this unit and train_tokenizer see its library.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "trainer/data/tokenizer/tokenizer.h"

namespace farstep {

// Returns the model in `content`, the content of `path`. Byte-pair models that normalise nothing,
// as those of LLaMA, are encoded in parts with a cache; others by the library. A text of the latter
// is never cut. `adds_bos`: the model's bos piece goes before each text. Throws DataError for
// another file, and for a model without an eos piece or with another one than `end_token`.
std::unique_ptr<const Tokenizer> read_sentencepiece(const std::filesystem::path& path,
                                                    const std::string& content,
                                                    const std::string& end_token,
                                                    bool adds_bos = false);

}  // namespace farstep
