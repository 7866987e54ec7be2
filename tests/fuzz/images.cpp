// An IDX file of images or labels, compressed or not; and the same bytes as records of CIFAR-10.

#include "tests/fuzz/fuzz_input.h"
#include "trainer/data/images/cifar_file.h"
#include "trainer/data/images/idx_file.h"

using namespace farstep;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const auto file = file_with(text_of(data, size));
  accept_or_refuse([&] { read_idx_file(file); });
  LabelledImages images;
  accept_or_refuse([&] { append_cifar_file(file, images, /*records=*/1); });
  return 0;
}
