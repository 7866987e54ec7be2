// The only file that includes Catch2: version 2 (Debian 12), or version 3 with version 2's names
// for the macros of the tests. Its assertions are not thread-safe: assert in the test's own thread.
#pragma once

#if __has_include(<catch2/catch.hpp>)
#include <catch2/catch.hpp>
#else
#include <catch2/catch_all.hpp>

using Catch::Approx;

namespace Catch {
using Matchers::StartsWith;
using TestEventListenerBase = EventListenerBase;
inline auto Contains(const std::string& part) {
  return Matchers::ContainsSubstring(part);
}
}  // namespace Catch
#endif
