// What a tokenizer's files say of the tokens around a text: the post-processor of a tokenizer.json,
// and the tokenizer_config.json beside it.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/tokenizer_json/json_members.h"

namespace farstep {

// Returns the ids that the member "post_processor" puts before a text that stands alone. Takes
// null, TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel and Sequence; throws
// DataError for others.
std::vector<int32_t> ids_before_text(const JsonValue& json);

// What a tokenizer_config.json says.
struct TokenizerConfig {
  std::optional<std::string> eos = {}, bos = {};  // names of tokens
  bool names_class = false;                       // of `transformers`
  // Whether bos goes before each text, as `transformers` does it; nullopt: as the post-processor
  // says.
  std::optional<bool> adds_bos = {};
};

// Reads the content of `file`, which is empty if there is no such file. Throws DataError if it is
// no JSON object.
TokenizerConfig read_tokenizer_config(const std::string& content, const std::string& file);

}  // namespace farstep
