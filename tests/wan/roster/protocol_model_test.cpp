// The protocol in many runs that a seed draws. To replay one, with all of its messages:
//   FARSTEP_MODEL_SEED=17 build/release/protocol_model_test
// FARSTEP_MODEL_SCHEDULES sets the number of runs.
#include <cstdlib>

#include "tests/support/catch.h"
#include "tests/wan/roster/model_world.h"

using namespace farstep;
using namespace farstep::wan;

namespace {

// About ten seconds in release. Under a sanitizer a schedule takes 50 times as long.
#ifdef FARSTEP_SANITIZED
constexpr int64_t kSchedules = 1'000;
#else
constexpr int64_t kSchedules = 30'000;
#endif

std::optional<int64_t> number_of(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  return std::stoll(text);
}

}  // namespace

TEST_CASE("every schedule of messages and faults keeps the protocol's promises") {
  const auto replayed = number_of("FARSTEP_MODEL_SEED");
  const int64_t first = replayed.value_or(1);
  const int64_t last = replayed.value_or(number_of("FARSTEP_MODEL_SCHEDULES").value_or(kSchedules));
  int64_t completed = 0, newcomers = 0, in_mid_round = 0, restarts = 0, takeovers = 0, together = 0;
  for (int64_t seed = first; seed <= last; ++seed) {
    ModelWorld world(static_cast<uint64_t>(seed), replayed.has_value());
    try {
      world.play();
    } catch (const std::exception& error) {
      FAIL("FARSTEP_MODEL_SEED=" << seed << ": " << error.what());
    }
    completed += world.was_completed() ? 1 : 0;
    newcomers += world.num_newcomers_taken();
    in_mid_round += world.num_handovers_in_mid_round();
    restarts += world.has_lost_coordinator() ? 1 : 0;
    takeovers += world.num_takeovers();
    together += world.num_losses_together();
  }
  if (last - first < 1000) return;  // too few to tell
  INFO(completed << " runs were completed, " << newcomers << " newcomers taken in, " << in_mid_round
                 << " states handed over in mid-round, " << restarts << " coordinators lost, "
                 << takeovers << " runs taken over by stand-bys, " << together
                 << " times sites lost together");
  // Otherwise the faults end all runs, and nothing is tested.
  CHECK(2 * completed > last);
  CHECK(4 * newcomers > last);
  CHECK(8 * in_mid_round > last);
  CHECK(4 * restarts > last);
  CHECK(10 * takeovers > last);
  CHECK(2000 * together > last);
}
