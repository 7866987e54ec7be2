#include "trainer/model/language/companion_files.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/checkpoint/hf_folder.h"
#include "trainer/config/strict_json.h"
#include "trainer/data/tokenizer/sentencepiece_file.h"
#include "trainer/data/tokenizer/sentencepiece_json.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/data/tokenizer/tokenizer_files.h"

namespace farstep {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kAddedTokensFile = "added_tokens.json";  // of `transformers`
constexpr const char* kTokenizerClass = "tokenizer_class";
constexpr const char* kLlamaTokenizer = "LlamaTokenizer";
// A vocabulary is an object or an array of any size.
constexpr JsonLimits kLimits{.members = 10'000'000};

bool have_one_vocabulary(const std::vector<NamedText>& some, const std::vector<NamedText>& others) {
  return std::ranges::any_of(some, [&](const NamedText& file) {
    return has_vocabulary(file) && std::ranges::any_of(others, [&](const NamedText& other) {
             return other.name == file.name && other.content == file.content;
           });
  });
}

// LLaMA's class converts a model by itself, as one of byte pairs. The general one takes the
// tokenizer.json as it is.
void name_general_class(std::string& config_text) {
  auto config = parse_if_json(config_text, std::string(kTokenizerConfigFile), kLimits);
  if (!config || !config->is_object() || !config->contains(kTokenizerClass) ||
      config->at(kTokenizerClass) != kLlamaTokenizer) {
    return;
  }
  config->at(kTokenizerClass) = "PreTrainedTokenizerFast";
  config_text = config->dump(2) + "\n";
}

bool is_unigram(const std::string& model) {
  const auto file = read_sentencepiece_file(model);
  return file && file->is_unigram();
}

// Counts ids only: how the tokenizer cuts text is the business of the program that uses it.
class TokenizerJson {
 public:
  explicit TokenizerJson(const fs::path& file) : file_(file) {
    try {
      json_ = parse_strictly<nlohmann::json>(read_file(file), kLimits);
    } catch (const DataError& error) {
      refuse(error.what());
    }
  }

  int64_t ids() const {
    const auto& model = member(json_, "model");
    const auto& vocabulary = member(model, "vocab");
    // An array has the piece of id i at place i.
    int64_t ids = vocabulary.is_array() ? static_cast<int64_t>(vocabulary.size()) : 0;
    if (vocabulary.is_object()) {
      for (const auto& [piece, id] : vocabulary.items()) ids = std::max(ids, next(id));
    }
    if (json_.contains("added_tokens")) {
      const auto& added = json_["added_tokens"];
      if (!added.is_array()) refuse("added_tokens: is not a list");
      for (const auto& token : added) ids = std::max(ids, next(member(token, "id")));
    }
    return ids;
  }

 private:
  const nlohmann::json& member(const nlohmann::json& object, const char* name) const {
    if (!object.is_object() || !object.contains(name)) refuse(fmt::format("has no {}", name));
    return object.at(name);
  }
  int64_t next(const nlohmann::json& id) const {
    constexpr uint64_t kMost = uint64_t{1} << 32;
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= kMost) {
      refuse(fmt::format("has the id {}; ids are numbers from 0", id.dump()));
    }
    return id.get<int64_t>() + 1;
  }
  [[noreturn]] void refuse(const std::string& message) const {
    throw DataError(
        fmt::format("{}: {}; copy the tokenizer's files again", file_.string(), message));
  }

  const fs::path file_;
  nlohmann::json json_;
};

}  // namespace

TokenizerJsonNotes add_tokenizer_json(std::vector<NamedText>& files) {
  const auto content = [&](std::string_view name) {
    const auto found = std::ranges::find(files, name, &NamedText::name);
    return found == files.end() ? std::string() : found->content;
  };
  const auto model = content(kTokenizerFile);
  if (model.empty() || !content(kTokenizerJsonFile).empty()) return {};
  if (!content(kAddedTokensFile).empty()) {
    return {.reason = fmt::format("{} has tokens that the model does not have", kAddedTokensFile),
            .caution = ""};
  }
  auto made = make_tokenizer_json(model, content(kTokenizerConfigFile));
  if (made.reason.empty()) {
    const auto config = std::ranges::find(files, kTokenizerConfigFile, &NamedText::name);
    if (config != files.end() && is_unigram(model)) name_general_class(config->content);
    files.push_back({std::string(kTokenizerJsonFile), std::move(made.content)});
  }
  return {.reason = std::move(made.reason), .caution = std::move(made.caution)};
}

bool has_vocabulary(const NamedText& file) {
  return file.name == kTokenizerFile || file.name == kTokenizerJsonFile;
}

std::string names_text(const std::vector<NamedText>& files) {
  if (files.empty()) return "no tokenizer";
  std::string text;
  for (const auto& file : files) text += (text.empty() ? "" : ", ") + file.name;
  return text;
}

std::vector<NamedText> companion_files(const fs::path& model, const fs::path& data) {
  std::vector<NamedText> own, of_data;
  if (!model.empty()) {
    own = read_hf_files(model, kHfTokenizerFiles);
    std::ranges::move(read_hf_files(model, std::array{kHfGenerationFile}), std::back_inserter(own));
  }
  if (!data.empty()) of_data = read_hf_files(data, kHfTokenizerFiles);
  const bool is_other =
      std::ranges::any_of(of_data, has_vocabulary) && !have_one_vocabulary(of_data, own);
  if (!is_other) return own;
  if (of_data.size() == 1 && of_data[0].name == kTokenizerFile) {
    of_data.push_back({std::string(kTokenizerConfigFile),
                       sentencepiece_config(of_data[0].content, /*adds_bos=*/false)});
  }
  return of_data;
}

std::optional<int64_t> tokenizer_ids(const fs::path& folder) {
  if (fs::exists(folder / kTokenizerJsonFile))
    return TokenizerJson(folder / kTokenizerJsonFile).ids();
  if (!fs::exists(folder / kTokenizerFile)) return std::nullopt;
  return Tokenizer::load(folder / kTokenizerFile)->vocabulary();
}

DocumentTokens document_tokens(const fs::path& data, int64_t eos) {
  DocumentTokens tokens{.eos = eos, .bos = {}};
  if (has_tokenizer(data)) tokens.bos = Tokenizer::load(data)->bos();
  return tokens;
}

HfFacts trained_facts(const std::optional<HfFacts>& start, const DocumentTokens& tokens,
                      int64_t length) {
  HfFacts facts{.positions = length};
  if (start) {
    facts = *start;
    facts.positions = std::max(start->positions, length);
    if (!tokens.eos || std::ranges::find(start->eos, *tokens.eos) != start->eos.end()) return facts;
  }
  facts.bos = tokens.bos;
  facts.pad = std::nullopt;
  facts.eos.clear();
  if (tokens.eos) facts.eos = {*tokens.eos};
  return facts;
}

void set_generation_ends(std::vector<NamedText>& files, const std::vector<int64_t>& eos) {
  constexpr const char* kMember = "eos_token_id";
  const auto file = std::ranges::find(files, kHfGenerationFile, &NamedText::name);
  if (file == files.end() || eos.empty()) return;
  auto json = Json::parse(file->content, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains(kMember) || json[kMember].is_null()) return;
  const auto& ends = json[kMember];
  for (const auto& end : ends.is_array() ? ends : Json::array({ends})) {
    if (std::ranges::any_of(eos, [&](int64_t id) { return end == id; })) return;
  }
  json[kMember] = eos;
  file->content = json.dump(2) + "\n";
}

}  // namespace farstep
