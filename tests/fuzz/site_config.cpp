// A site's config and a coordinator's. They name other files, which are not there.

#include "tests/fuzz/fuzz_input.h"
#include "trainer/settings/load_config.h"

using namespace farstep;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const auto file = file_with(text_of(data, size));
  accept_or_refuse([&] { load_site(file, {}); });
  accept_or_refuse([&] { load_coordinator(file, {}); });
  return 0;
}
