// LibTorch exports a Gloo of its own; the one that runs must be the system's, whose headers we
// compile with.
#include <ATen/ATen.h>
#include <dlfcn.h>

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
  // What the program's own calls are bound to: the first library after it that has the symbol.
  constexpr auto kCreateDevice = "_ZN4gloo9transport3tcp12CreateDeviceERKNS1_4attrE";
  const auto library = library_of(dlsym(RTLD_NEXT, kCreateDevice));
  INFO(library);
  REQUIRE(library.find("libgloo.so") != std::string::npos);
  // LibTorch has one, too, so that the order on the link line matters.
  const auto torch = dlopen("libtorch_cpu.so", RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(torch != nullptr);
  REQUIRE(library_of(dlsym(torch, "_ZN4gloo9allreduceERKNS_16AllreduceOptionsE"))
              .find("libtorch_cpu.so") != std::string::npos);
  dlclose(torch);
}
