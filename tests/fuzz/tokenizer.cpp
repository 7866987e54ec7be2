// A SentencePiece model. The library that parses it first is not instrumented.

#include "trainer/data/tokenizer/tokenizer.h"

#include "tests/fuzz/fuzz_input.h"

using namespace farstep;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  accept_or_refuse([&] {
    const auto tokenizer = Tokenizer::load(file_with(text_of(data, size)));
    tokenizer->decode(tokenizer->encode("A day, a night.\n\tcaf\xc3\xa9 \xff"));
  });
  return 0;
}
