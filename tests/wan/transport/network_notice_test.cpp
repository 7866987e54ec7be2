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
  CHECK(back.kept.empty());
  const NetworkNotice later{"10.0.0.1", "00ff", {0, 4000}, "", false, {0, 3}};
  CHECK(read_network_notice(text_of(later), 2).kept == Offers{0, 3});
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

TEST_CASE("a connection is kept if both ends offer the same one") {
  const std::vector<Offers> offers{{0, 3, 3, 3}, {3, 0, 5, 0}, {4, 5, 0, 0}, {}};
  CHECK(is_kept(offers, 0, 1));
  CHECK(is_kept(offers, 1, 0));
  CHECK(is_kept(offers, 1, 2));
  CHECK_FALSE(is_kept(offers, 0, 2));  // another one
  CHECK_FALSE(is_kept(offers, 0, 3));  // only one end
  CHECK_FALSE(is_kept(offers, 1, 3));  // neither
}

TEST_CASE("a mesh is kept if every pair is") {
  CHECK(are_all_kept({}));
  CHECK(are_all_kept({{}}));
  CHECK(are_all_kept({{0, 2, 2}, {2, 0, 7}, {2, 7, 0}}));
  CHECK_FALSE(are_all_kept({{0, 2, 2}, {2, 0, 7}, {2, 6, 0}}));
  CHECK_FALSE(are_all_kept({{}, {}}));
}

TEST_CASE("offers come back as they were published, and others are refused") {
  for (const auto& offers : {Offers{}, Offers{0, 12, 1'000'000'000'000}}) {
    CHECK(read_offers(text_of(offers), 3) == offers);
  }
  for (const char* text : {"1", "1,2", "1,2,3,4", "1,2,", ",1,2", "1,2,x", "1,-2,3", "1 2 3",
                           "1,2,99999999999999999999", "0,0,0,"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(read_offers(text, 3), DataError);
  }
}

}  // namespace farstep::wan
