// LibTorch exports a Gloo of its own; the one that runs must be the system's, whose headers we
// compile with.
#include <ATen/ATen.h>
#include <dlfcn.h>
#include <gloo/transport/tcp/device.h>

#include <string>

#include "tests/support/catch.h"

namespace {

std::string library_of(void* address) {
  Dl_info info{};
  return dladdr(address, &info) != 0 ? info.dli_fname : "";
}

}  // namespace

TEST_CASE("Gloo in a process with LibTorch is the library of the system") {
  // So that LibTorch is in the process, whatever the linker thinks of it.
  REQUIRE(at::ones({2}).sum().item<double>() == 2);
  const auto create_device = &gloo::transport::tcp::CreateDevice;
  REQUIRE(library_of(reinterpret_cast<void*>(create_device)).find("libgloo.so") !=
          std::string::npos);
  // What a call through the dynamic linker finds first.
  const auto symbol = "_ZN4gloo9transport3tcp12CreateDeviceERKNS1_4attrE";
  REQUIRE(library_of(dlsym(RTLD_DEFAULT, symbol)).find("libgloo.so") != std::string::npos);
}
