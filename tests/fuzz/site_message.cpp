// A frame that reaches the coordinator, from a site or a stranger.

#include "tests/fuzz/fuzz_input.h"
#include "wan/protocol/protocol.h"

using namespace farstep;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  accept_or_refuse([&] {
    const auto frame = encode(wan::decode_site_message(std::string(text_of(data, size))));
    FARSTEP_CHECK(encode(wan::decode_site_message(frame)) == frame, "{}", frame);
  });
  return 0;
}
