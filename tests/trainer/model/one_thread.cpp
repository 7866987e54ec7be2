// Every test begins with one thread, and may ask for more: many test programs run at once.
#define CATCH_CONFIG_EXTERNAL_INTERFACES
#include <ATen/Parallel.h>

#include "tests/support/catch.h"

namespace farstep {

namespace {

using Listener = Catch::TestEventListenerBase;

struct OneThread : Listener {
  using Listener::Listener;
  void testCaseStarting(const Catch::TestCaseInfo& /*test*/) override { at::set_num_threads(1); }
};

}  // namespace

CATCH_REGISTER_LISTENER(OneThread)

}  // namespace farstep
