#include "trainer/data/tokenizer_json/text_normalizer.h"

#include <algorithm>

#include "trainer/base/error.h"

namespace farstep {

namespace {

std::string replaced(const std::string& text, const std::string& from, const std::string& to) {
  std::string result;
  std::size_t begin = 0;
  for (auto found = text.find(from); found != std::string::npos; found = text.find(from, begin)) {
    result.append(text, begin, found - begin);
    result += to;
    begin = found + from.size();
  }
  return result.append(text, begin);
}

}  // namespace

TextNormalizer::TextNormalizer(const JsonValue& json) {
  if (!json.is_null()) add(json, 0);
}

void TextNormalizer::add(const JsonValue& json, int depth) {
  const auto type = json["type"].text();
  const auto names = enum_names(NormalForm{});
  const auto form = std::find(names.begin(), names.end(), type);
  if (type == "Sequence") {
    const auto list = json["normalizers"];
    if (depth == kMostDepth) json.refuse("too many sequences in each other");
    for (std::size_t i = 0; i < list.size(); ++i) add(list.at(i), depth + 1);
  } else if (form != names.end()) {
    steps_.emplace_back(static_cast<NormalForm>(form - names.begin()));
  } else if (type == "Prepend") {
    steps_.emplace_back(Prepend{json["prepend"].text()});
  } else if (type == "Replace" && !json["pattern"]["String"].is_null()) {
    const auto from = json["pattern"]["String"].text();
    if (from.empty()) json["pattern"].refuse("an empty text cannot be replaced");
    steps_.emplace_back(Replace{from, json["content"].text()});
  } else {
    json.refuse(fmt::format("the normalizer {}{} is not supported", type,
                            type == "Replace" ? " of a regular expression" : ""));
  }
}

bool TextNormalizer::prepends() const {
  return std::any_of(steps_.begin(), steps_.end(),
                     [](const auto& step) { return std::holds_alternative<Prepend>(step); });
}

std::string TextNormalizer::operator()(std::string_view text, bool begins_text) const {
  std::string result(text);
  for (const auto& step : steps_) {
    if (const auto* const form = std::get_if<NormalForm>(&step)) {
      result = normalized(result, *form);
    } else if (const auto* const replace = std::get_if<Replace>(&step)) {
      result = replaced(result, replace->from, replace->to);
    } else if (begins_text && !result.empty()) {
      result.insert(0, std::get<Prepend>(step).text);
    }
  }
  return result;
}

}  // namespace farstep
