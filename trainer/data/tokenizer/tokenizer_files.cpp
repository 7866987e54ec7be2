#include "trainer/data/tokenizer/tokenizer_files.h"

#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/config/strict_json.h"
#include "trainer/data/tokenizer/sentencepiece_json.h"
#include "trainer/data/tokenizer/tokenizer.h"

namespace farstep {

namespace fs = std::filesystem;

bool is_json(std::string_view content) {
  const auto first = content.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  return first != std::string_view::npos && content[first] == '{';
}

fs::path tokenizer_file(const fs::path& path) {
  std::error_code none;
  if (!fs::is_directory(path, none)) return path;
  for (const auto name : {kTokenizerJsonFile, kTokenizerFile}) {
    if (fs::exists(path / name, none)) return path / name;
  }
  throw DataError(fmt::format("{}: has no tokenizer: neither {} nor {}", path.string(),
                              kTokenizerJsonFile, kTokenizerFile));
}

bool has_tokenizer(const fs::path& folder) {
  std::error_code none;
  return fs::exists(folder / kTokenizerJsonFile, none) || fs::exists(folder / kTokenizerFile, none);
}

std::vector<fs::path> tokenizer_files(const fs::path& path) {
  std::vector<fs::path> files = {tokenizer_file(path)};
  const auto config = files.front().parent_path() / kTokenizerConfigFile;
  std::error_code none;
  if (fs::exists(config, none)) files.push_back(config);
  return files;
}

void copy_tokenizer(const fs::path& path, const fs::path& folder, const std::string& end_token) {
  const auto files = tokenizer_files(path);
  const auto content = read_file(files.front());
  const bool json = is_json(content);
  write_file_durably(folder / (json ? kTokenizerJsonFile : kTokenizerFile), content);
  // What says that bos begins a text may be anywhere in the model's folder.
  if (!json && !Tokenizer::load(path)->opening().empty()) {
    write_file_durably(folder / kTokenizerConfigFile, sentencepiece_config(content, true));
  }
  if (!json || (files.size() == 1 && end_token.empty())) return;
  auto config = files.size() == 1 ? std::string("{}") : read_file(files[1]);
  if (!end_token.empty()) {
    // Its added tokens are an object of any size.
    auto parsed = parse_if_json(config, files.back().string(), {.members = 10'000'000});
    if (!parsed || !parsed->is_object()) {
      throw DataError(fmt::format("{}: not a JSON object", files[1].string()));
    }
    (*parsed)["eos_token"] = end_token;
    config = parsed->dump(2) + "\n";
  }
  write_file_durably(folder / kTokenizerConfigFile, config);
}

}  // namespace farstep
