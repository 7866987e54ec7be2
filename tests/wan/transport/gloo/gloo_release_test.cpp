#include "wan/transport/gloo/gloo_release.h"

#include <dlfcn.h>

#include "tests/support/catch.h"

namespace farstep::wan {
namespace {

TEST_CASE("the headers tell how the library connects") {
  // A release that listens at one port for all pairs has a class for that.
  constexpr auto kListener = "_ZN4gloo9transport3tcp8Listener11nextAddressEv";
  const auto library = dlopen("libgloo.so.0", RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(library != nullptr);
  const bool has_listener = dlsym(library, kListener) != nullptr;
  dlclose(library);
  CHECK(gloo_release() == (has_listener ? "of May 2023 or later" : "of before May 2023"));
}

}  // namespace
}  // namespace farstep::wan
