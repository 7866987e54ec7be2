#include "trainer/data/tokenizer_json/byte_pair_model.h"

#include "trainer/base/error.h"

namespace farstep {

namespace {

struct Pair {
  std::string left, right;
};

// "a b", or since 2024 ["a", "b"], because a token may have a space in it.
Pair read_pair(const JsonValue& json) {
  if (json.json().is_array()) {
    if (json.size() != 2) json.refuse("must be two tokens");
    return {json.at(0).text(), json.at(1).text()};
  }
  const auto line = json.text();
  const auto space = line.find(' ');
  if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos) {
    json.refuse("must be two tokens with a space between them");
  }
  return {line.substr(0, space), line.substr(space + 1)};
}

}  // namespace

BytePairModel::BytePairModel(const JsonValue& json) {
  // Old files of GPT-2 do not name the type; those of other models always do.
  const auto type = json["type"].is_null() ? "BPE" : json["type"].text();
  if (type != "BPE") json.refuse(fmt::format("the model {} is not supported, only BPE is", type));
  if (const auto dropout = json["dropout"]; !dropout.is_null() && dropout.json() != 0) {
    dropout.refuse("dropout makes other tokens each time, and is not supported");
  }
  for (const char* const name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (const auto affix = json[name]; !affix.is_null() && !affix.text().empty()) {
      affix.refuse(fmt::format("'{}' is not supported, only none is", affix.text()));
    }
  }
  fuses_unknown = json["fuse_unk"].flag(false);
  byte_fallback = json["byte_fallback"].flag(false);
  ignores_merges = json["ignore_merges"].flag(false);

  const auto tokens = json["vocab"];
  if (!tokens.json().is_object()) tokens.refuse("must be an object");
  vocabulary.reserve(tokens.json().size());
  for (const auto& [token, id] : tokens.json().items()) {
    if (token.empty()) continue;  // it can be nowhere
    vocabulary.emplace(token, JsonValue(id, "model.vocab." + token).id());
  }
  const auto id_of = [&](const std::string& token, const JsonValue& where) {
    const auto found = vocabulary.find(token);
    if (found == vocabulary.end())
      where.refuse(fmt::format("'{}' is not in the vocabulary", token));
    return found->second;
  };
  if (const auto token = json["unk_token"]; !token.is_null()) unknown = id_of(token.text(), token);
  const auto list = json["merges"];
  merges.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto entry = list.at(i);
    const auto pair = read_pair(entry);
    merges.push_back(
        {id_of(pair.left, entry), id_of(pair.right, entry), id_of(pair.left + pair.right, entry)});
  }
}

}  // namespace farstep
