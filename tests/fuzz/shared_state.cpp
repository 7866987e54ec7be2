// A donor's JSON, which a newcomer takes, and the plan of the round that it attends with it. The
// input: a byte with the kind of run, and the JSON.

#include "tests/fuzz/donated_run.h"
#include "trainer/round/round_plan.h"

using namespace farstep;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  scratch_folder();
  static const auto configs = donated_configs();
  DonatedRun newcomer(configs[data[0] % configs.size()]);
  auto& run = newcomer.run;
  accept_or_refuse([&] {
    const auto state = read_shared_state(text_of(data + 1, size - 1));
    take_shared_state(run, state);
    const auto& plan = run.planner.plan({state.generation, state.members, 0});
    planned_work(run.config, plan);
    reserve_windows(run, plan);
  });
  return 0;
}
