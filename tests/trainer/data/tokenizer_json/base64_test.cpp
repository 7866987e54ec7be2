#include "trainer/data/tokenizer_json/base64.h"

#include <map>

#include "tests/support/catch.h"

namespace farstep {

TEST_CASE("Base64 is that of RFC 4648") {
  const std::map<std::string, std::string> known = {{"", ""},
                                                    {"f", "Zg=="},
                                                    {"fo", "Zm8="},
                                                    {"foo", "Zm9v"},
                                                    {"foob", "Zm9vYg=="},
                                                    {"fooba", "Zm9vYmE="},
                                                    {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : known) {
    CHECK(base64_text(bytes) == text);
    CHECK(base64_bytes(text) == bytes);
  }
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  CHECK((base64_bytes(base64_text(all)) == all));
  for (const auto* text : {"Zg", "Zg=", "Z===", "Zm9v\n", "Zm9-", "=m9v"}) {
    CHECK_FALSE(base64_bytes(text));
  }
}

}  // namespace farstep
