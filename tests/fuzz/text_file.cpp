// A file that may be text, lines of JSON, or either compressed; and a line of JSON, which must be
// one if a library's stricter parser takes it.

#include <nlohmann/json.hpp>

#include "tests/fuzz/fuzz_input.h"
#include "trainer/data/documents/json_line.h"
#include "trainer/data/documents/text_source.h"
#include "trainer/data/text/utf8.h"

using namespace farstep;

namespace {

void read_documents(const std::filesystem::path& path, FileKind kind) {
  accept_or_refuse([&] {
    TextSource source(path, kind);
    int64_t count = 0;
    for (; const auto document = source.next(); ++count) {
      const bool is_text = document->fault == TextFault::kNone;
      if (is_text != document->what.empty()) std::abort();
      if (valid_utf8_bytes(document->text) < document->text.size()) std::abort();
    }
    if (count_documents(path, kind) != count) std::abort();
  });
}

void read_line(std::string_view text) {
  const JsonLine line(text);
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return;
  if (line.fault()) std::abort();
  if (!json.is_object()) return;
  for (const auto& [name, value] : json.items()) {
    const auto member = line.member(name);
    if (member.type == JsonType::kString && text_of(member) != value) std::abort();
    if (member.type == JsonType::kList && elements_of(member).size() != value.size()) std::abort();
    if (value.is_string() != (member.type == JsonType::kString)) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const auto text = text_of(data, size);
  const auto path = file_with(text);
  accept_or_refuse([&] { form_of(path); });
  for (const auto kind : {FileKind::kText, FileKind::kJsonLines}) read_documents(path, kind);
  read_line(text);
  return 0;
}
