// A tokenizer.json of Hugging Face as a Tokenizer: byte-pair encoding of bytes (GPT-2, Llama 3,
// SmolLM2, Qwen, DeepSeek) or of characters with byte fallback (LLaMA 2, Mistral); the likeliest
// pieces (Unigram: T5, XLM-R).
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "trainer/data/tokenizer/tokenizer.h"

namespace farstep {

// Returns the tokenizer in `content`, the content of `path`. Of the post-processor counts what
// it puts before a text (Tokenizer::opening()). Truncation and padding are not used, as they only
// add tokens to a text or leave some out. Throws DataError, with file and the path in it, for what
// is wrong or not supported. `config` is the content of the
// tokenizer_config.json beside it, empty if there is none. See Tokenizer::load() for the others.
std::unique_ptr<const Tokenizer> read_json_tokenizer(const std::filesystem::path& path,
                                                     const std::string& content,
                                                     const std::string& config,
                                                     const std::string& end_token,
                                                     SpecialTokens specials);

}  // namespace farstep
