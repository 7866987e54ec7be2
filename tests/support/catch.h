// The only place that includes Catch2. Its assertions are not thread-safe: assert in the test's own
// thread.
#pragma once

#include <catch2/catch.hpp>
