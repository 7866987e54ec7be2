// A lab's description of itself, and the specification from which it was made.

#include "tests/fuzz/fuzz_input.h"
#include "trainer/config/config_file.h"
#include "trainer/launch/lab_places.h"
#include "wan/lab/lab_spec.h"

using namespace farstep;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const auto file = file_with(text_of(data, size));
  accept_or_refuse([&] { const LabPlaces places(file, 1); });
  accept_or_refuse([&] { read_json<wan::LabSpec>(load_json(file), "spec.json"); });
  return 0;
}
