// A tokenizer.json, and a text of all kinds of characters that it encodes and cuts.

#include "tests/fuzz/fuzz_input.h"
#include "trainer/data/tokenizer/tokenizer.h"

using namespace farstep;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  constexpr std::string_view kText =
      "A day,  a night's 12345.\n\tcaf\xc3\xa9 e\xcc\x81 \xe4\xbd\xa0\xe5\xa5\xbd <s>\r\n\xff";
  const auto file = file_with(text_of(data, size));
  for (const auto specials : {SpecialTokens::kText, SpecialTokens::kTokens})
    accept_or_refuse([&] {
      const auto tokenizer = Tokenizer::load(file, "<s>", specials);
      for (std::size_t i = 1; i < kText.size() - 1; ++i) {
        if ((kText[i] & 0xc0) != 0x80) tokenizer->may_cut(kText, i);
      }
      tokenizer->decode(tokenizer->encode_opened(kText));
    });
  return 0;
}
