// An IDX file of images or labels, compressed or not.

#include "tests/fuzz/fuzz_input.h"
#include "trainer/data/idx_file.h"

using namespace farstep;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  accept_or_refuse([&] { read_idx_file(file_with(text_of(data, size))); });
  return 0;
}
