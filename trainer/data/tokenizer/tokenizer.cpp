#include "trainer/data/tokenizer/tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/data/text/utf8.h"
#include "trainer/data/tokenizer/json_tokenizer.h"
#include "trainer/data/tokenizer/sentencepiece_tokenizer.h"
#include "trainer/data/tokenizer/tokenizer_files.h"
#include "trainer/data/tokenizer_json/text_frame.h"

namespace farstep {

namespace {

// Whether `transformers` takes LLaMA's class for the SentencePiece model in a folder, which puts
// bos before each text, as the model in the folder is one.
bool is_beside_llama(const std::filesystem::path& folder) {
  std::error_code none;
  const auto file = folder / "config.json";
  if (!std::filesystem::exists(file, none)) return false;
  const auto json = nlohmann::json::parse(read_file(file), nullptr, /*allow_exceptions=*/false);
  return json.is_object() && json.contains("model_type") && json["model_type"] == "llama";
}

}  // namespace

// The content decides, as people name their files as they like.
std::unique_ptr<const Tokenizer> Tokenizer::load(const std::filesystem::path& path,
                                                 const std::string& end_token,
                                                 SpecialTokens specials) {
  const auto file = tokenizer_file(path);
  const auto content = read_file(file);
  const auto config = file.parent_path() / kTokenizerConfigFile;
  std::error_code none;
  const auto config_text = std::filesystem::exists(config, none) ? read_file(config) : "";
  if (is_json(content)) return read_json_tokenizer(file, content, config_text, end_token, specials);
  const auto facts = read_tokenizer_config(config_text, config.string());
  const bool adds_bos =
      facts.adds_bos.value_or(!facts.names_class && is_beside_llama(file.parent_path()));
  return read_sentencepiece(file, content, end_token, adds_bos);
}

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  encode_part(text, true, ids);
  return ids;
}

void Tokenizer::encode_part(std::string_view part, bool begins_text,
                            std::vector<int32_t>& ids) const {
  if (valid_utf8_bytes(part) == part.size()) return encode_valid(part, begins_text, ids);
  encode_valid(with_replaced_bytes(part), begins_text, ids);
}

std::vector<int32_t> Tokenizer::encode_opened(std::string_view text) const {
  std::vector<int32_t> ids;
  encode_part_opened(text, true, ids);
  return ids;
}

void Tokenizer::encode_part_opened(std::string_view part, bool begins_text,
                                   std::vector<int32_t>& ids) const {
  const auto begin = std::ssize(ids);
  encode_part(part, begins_text, ids);
  const auto own = ids.begin() + begin;
  const auto shared = std::mismatch(own, ids.end(), opening().begin(), opening().end()).second;
  if (begins_text && shared != opening().end()) {
    ids.insert(own, opening().begin(), opening().end());
  }
}

}  // namespace farstep
