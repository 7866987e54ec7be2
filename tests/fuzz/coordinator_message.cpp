// A frame that reaches a site, from whoever answers at the coordinator's address.

#include "tests/fuzz/fuzz_input.h"
#include "trainer/settings/run_config.h"
#include "wan/protocol/protocol.h"

using namespace farstep;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  accept_or_refuse([&] {
    const auto message = wan::decode_coordinator_message(std::string(text_of(data, size)));
    const auto frame = encode(message);
    FARSTEP_CHECK(encode(wan::decode_coordinator_message(frame)) == frame, "{}", frame);
    if (const auto* welcome = std::get_if<wan::Welcome>(&message)) {
      run_config_from_json(welcome->run, "the coordinator's run");
    }
  });
  return 0;
}
