// config.json of a language model and tokenizer.json beside it: the input's two parts, with a zero
// between them.

#include "trainer/model/shape/hf_config.h"
#include "tests/fuzz/fuzz_input.h"
#include "trainer/config/strict_json.h"
#include "trainer/model/language/companion_files.h"

using namespace farstep;

namespace {

// What is accepted must come back from its own form.
void read_config(std::string_view text) {
  const auto config = from_hugging_face(parse_strictly<Json>(text), "config.json");
  if (from_hugging_face(to_hugging_face(config), "config.json") != config) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const auto input = text_of(data, size);
  const auto config = input.substr(0, input.find('\0'));
  accept_or_refuse([&] { read_config(config); });
  write_file(scratch_folder() / "tokenizer.json", input.substr(std::min(config.size() + 1, size)));
  accept_or_refuse([&] { tokenizer_ids(scratch_folder().path()); });
  return 0;
}
