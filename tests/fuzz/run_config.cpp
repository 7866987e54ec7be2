// The run file, as a site and the coordinator load it.

#include "trainer/settings/run_config.h"
#include "tests/fuzz/fuzz_input.h"
#include "trainer/config/config_file.h"

using namespace farstep;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  accept_or_refuse([&] {
    const auto printed =
        to_json(run_config_from_json(load_json(file_with(text_of(data, size))), "run.json"));
    // What the coordinator sends on is a run file again, of the same run.
    FARSTEP_CHECK(to_json(run_config_from_json(printed, "run.json")) == printed, "{}",
                  printed.dump());
  });
  return 0;
}
