#include "trainer/data/tokenizer_json/text_frame.h"

#include <algorithm>

#include "trainer/base/error.h"

namespace farstep {

namespace {

// These classes of `transformers` put bos before each text unless add_bos_token says otherwise,
// whatever a tokenizer.json has.
constexpr std::string_view kClassesWithBos[] = {"LlamaTokenizer", "CodeLlamaTokenizer",
                                                "GemmaTokenizer", "CohereTokenizer"};

// Appends the ids that stand before the text in the template for one text.
void add_of_template(const JsonValue& json, std::vector<int32_t>& ids) {
  const auto pieces = json["single"];
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto token = pieces.at(i)["SpecialToken"];
    if (token.is_null()) return;  // the text
    const auto own = json["special_tokens"][token["id"].text()]["ids"];
    for (std::size_t k = 0; k < own.size(); ++k) ids.push_back(own.at(k).id());
  }
}

std::vector<int32_t> ids_before_text(const JsonValue& json, int depth) {
  std::vector<int32_t> ids;
  if (json.is_null()) return ids;
  const auto type = json["type"].text();
  if (type == "TemplateProcessing") {
    add_of_template(json, ids);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    const auto token = json["cls"];
    if (token.size() != 2) token.refuse("must be the name of a token and its id");
    ids.push_back(token.at(1).id());
  } else if (type == "Sequence") {
    if (depth == kMostDepth) json.refuse("too many sequences in each other");
    const auto steps = json["processors"];
    // A step puts its tokens before those of the steps before it.
    for (auto i = steps.size(); i-- > 0;) {
      const auto own = ids_before_text(steps.at(i), depth + 1);
      ids.insert(ids.end(), own.begin(), own.end());
    }
  } else if (type != "ByteLevel") {
    json.refuse(fmt::format("the post-processor {} is not supported", type));
  }
  return ids;
}

// Returns a token's name, which stands there as a string or as {"content": ...}.
std::optional<std::string> token_name(const nlohmann::json& config, const char* member) {
  if (!config.contains(member)) return std::nullopt;
  const auto& token = config[member];
  if (token.is_string()) return token.get<std::string>();
  if (token.is_object() && token.contains("content") && token["content"].is_string()) {
    return token["content"].get<std::string>();
  }
  return std::nullopt;
}

bool puts_bos(std::string name) {
  constexpr std::string_view kFast = "Fast";
  if (name.ends_with(kFast)) name.resize(name.size() - kFast.size());
  return std::ranges::find(kClassesWithBos, name) != std::end(kClassesWithBos);
}

}  // namespace

std::vector<int32_t> ids_before_text(const JsonValue& json) {
  return ids_before_text(json, 0);
}

TokenizerConfig read_tokenizer_config(const std::string& content, const std::string& file) {
  if (content.empty()) return {};
  const auto json = nlohmann::json::parse(content, nullptr, /*allow_exceptions=*/false);
  // Without it other tokens would end and begin a text, without a word.
  if (!json.is_object()) {
    throw DataError(file + ": is no JSON object: copy or make the file again");
  }
  TokenizerConfig config{.eos = token_name(json, "eos_token"),
                         .bos = token_name(json, "bos_token")};
  const auto name = json.find("tokenizer_class");
  config.names_class = name != json.end() && name->is_string();
  if (config.names_class && puts_bos(name->get<std::string>())) config.adds_bos = true;
  const auto adds = json.find("add_bos_token");
  if (adds != json.end() && adds->is_boolean()) config.adds_bos = adds->get<bool>();
  return config;
}

}  // namespace farstep
