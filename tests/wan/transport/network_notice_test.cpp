#include "wan/transport/network_notice.h"

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep::wan {

using Catch::Contains;

TEST_CASE("a network notice comes back as it was published") {
  const auto back = read_network_notice(text_of({"10.0.0.1", "00ff", {0, 4000}, ""}), 2);
  CHECK(back.address == "10.0.0.1");
  CHECK(back.nonce == "00ff");
  CHECK(back.ports == std::vector<int>{0, 4000});
  for (const bool is_temporary : {false, true}) {
    const NetworkNotice refusal{"10.0.0.1", "00ff", {}, "no port", is_temporary};
    CHECK(read_network_notice(text_of(refusal), 2).failure == "no port");
    CHECK(read_network_notice(text_of(refusal), 2).is_temporary == is_temporary);
  }
}

// A site reads the port at its own rank, which was beyond the end of a short list.
TEST_CASE("a network notice without a valid port for every site is refused") {
  const auto with_ports = [](const std::string& ports) {
    return read_network_notice(
        R"({"address":"::1","nonce":"a","failure":"","ports":)" + ports + "}", 2);
  };
  CHECK_NOTHROW(with_ports("[0,65535]"));
  for (const char* ports :
       {"[]", "[1]", "[1,2,3]", "[0,65536]", "[0,-1]", "[0,0.5]", "{}", "null"}) {
    CAPTURE(ports);
    CHECK_THROWS_AS(with_ports(ports), DataError);
  }
  for (const char* text : {"", "[]", "{", "{\"port\":1}", "[[[[[[[[[["}) {
    CHECK_THROWS_AS(read_network_notice(text, 1), DataError);
  }
}

}  // namespace farstep::wan
