// A host with its port, as configs, options and messages have it. What is read can be written and
// read again.

#include "wan/sockets/host_port.h"

#include "tests/fuzz/fuzz_input.h"

using namespace farstep;

namespace {

constexpr const char* kField = "field";

// An error quotes the text, of which others may have sent the bytes.
template <typename Call>
void read(Call&& call) {
  try {
    call();
  } catch (const ConfigError& error) {
    const std::string_view text = error.what();
    FARSTEP_CHECK(std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; }), "{}",
                  text);
  }
}

void require_same(const wan::HostPort& place) {
  FARSTEP_CHECK(wan::parse_host_port(kField, place.text()) == place, "{}", place.text());
  FARSTEP_CHECK(wan::parse_endpoint(kField, place.endpoint()) == place, "{}", place.endpoint());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const auto text = text_of(data, size);
  read([&] { require_same(wan::parse_endpoint(kField, text)); });
  read([&] { require_same(wan::parse_host_port(kField, text)); });
  read([&] {
    const auto host = wan::parse_host(kField, text);
    FARSTEP_CHECK(wan::parse_host(kField, host) == host, "{}", host);
  });
  read([&] {
    const auto place = wan::parse_host_maybe_port(kField, text);
    if (place.port) require_same({place.host, *place.port});
  });
  return 0;
}
