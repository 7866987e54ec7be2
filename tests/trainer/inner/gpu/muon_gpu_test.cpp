// Muon on a GPU, which updates matrices of one shape together, against Muon on a CPU.
#include "tests/support/catch.h"
#include "tests/trainer/model/gpu_ops/tested_gpu.h"
#include "trainer/inner/muon/muon.h"

namespace farstep {

namespace {

// Five matrices of one shape, a tall one, a wide one, and a table for AdamW.
std::vector<ParameterSpec> layout() {
  LayoutBuilder builder;
  builder.table("embedding", {50, 64}, 1);
  for (int i = 0; i < 5; ++i) builder.weight("block." + std::to_string(i), {64, 64}, 1);
  builder.weight("up", {160, 64}, 1);
  builder.weight("down", {64, 160}, 1);
  return builder.finish();
}

}  // namespace

TEST_CASE("muon on a GPU updates matrices as on a CPU", "[gpu]") {
  const auto gpu = tested_gpu();
  if (!gpu) return;
  Parameters on_cpu(layout(), at::kCPU), on_gpu(layout(), *gpu);
  on_cpu.initialise(1);
  on_gpu.values().copy_(on_cpu.values());
  const auto before = on_cpu.values().clone();
  Muon cpu(MuonConfig{}, AdamWConfig{}, on_cpu, on_cpu.layout());
  Muon other(MuonConfig{}, AdamWConfig{}, on_gpu, on_gpu.layout());
  for (int step = 1; step <= 4; ++step) {
    on_cpu.gradients().copy_(at::randn_like(on_cpu.gradients()));
    on_gpu.gradients().copy_(on_cpu.gradients());
    cpu.update(0.01, 0.5);
    other.update(0.01, 0.5);
  }
  // Both round to bf16 within the iteration.
  const auto found = on_gpu.values().cpu();
  for (const auto& spec : on_cpu.layout()) {
    INFO(spec.name);
    const auto part = [&](const at::Tensor& flat) {
      return flat.narrow(0, spec.offset, spec.size());
    };
    const auto change = part(on_cpu.values()) - part(before);
    CHECK(((part(found) - part(on_cpu.values())).norm() / change.norm()).item<double>() < 0.02);
  }
}

}  // namespace farstep
