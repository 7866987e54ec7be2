#include "trainer/data/tokenizer/tokenizer.h"

#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/data/text/utf8.h"
#include "trainer/data/tokenizer/json_tokenizer.h"
#include "trainer/data/tokenizer/sentencepiece_tokenizer.h"
#include "trainer/data/tokenizer/tokenizer_files.h"

namespace farstep {

// The content decides, as people name their files as they like.
std::unique_ptr<const Tokenizer> Tokenizer::load(const std::filesystem::path& path,
                                                 const std::string& end_token,
                                                 SpecialTokens specials) {
  const auto file = tokenizer_file(path);
  const auto content = read_file(file);
  if (!is_json(content)) return read_sentencepiece(file, content, end_token);
  const auto config = file.parent_path() / kTokenizerConfigFile;
  std::error_code none;
  const bool has_config = std::filesystem::exists(config, none);
  return read_json_tokenizer(file, content, has_config ? read_file(config) : "", end_token,
                             specials);
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

}  // namespace farstep
