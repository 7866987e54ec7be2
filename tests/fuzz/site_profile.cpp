// What `farstep profile` measured of a site and its devices: a file, and a part of a registration.

#include "heterogeneity/knowledge/site_profile.h"
#include "tests/fuzz/fuzz_input.h"

using namespace farstep;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  accept_or_refuse([&] { heterogeneity::read_site_profiles({file_with(text_of(data, size))}); });
  return 0;
}
