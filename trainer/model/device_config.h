// A site's devices (`devices` of its config) and how it uses its processor (`cpu`).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "trainer/base/processor/instruction_set.h"
#include "trainer/config/fields.h"

namespace farstep {

enum class DeviceKind { kCpu, kCuda };
inline std::span<const std::string_view> enum_names(DeviceKind) {
  static constexpr std::array<std::string_view, 2> kNames{"cpu", "cuda"};
  return kNames;
}

// From one inner step of the process on, a device emulates another speed.
struct SpeedChange {
  int64_t step = 0;
  double times = 1;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("step", step, "from this inner step of the process on, counted from 1",
          required(at_least(1)));
    visit("times", times, "steps last so many times as long as before any change",
          required(above(0)));
  }
};

// Makes a device emulate a slower one, to try unequal sites on one machine.
struct EmulateConfig {
  std::optional<double> step_seconds = {}, sequence_seconds = {}, times = {};
  std::vector<SpeedChange> changes = {};

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("step_seconds", step_seconds, "an inner step takes at least so long", above(0));
    visit("sequence_seconds", sequence_seconds,
          "an inner step takes at least so long for every sequence of the device's share",
          above(0));
    visit("times", times, "an inner step takes so many times its own time", at_least(1));
    visit("changes", changes, "when the device gets slower or faster, in order of `step`");
  }
};

struct DeviceConfig {
  DeviceKind kind = DeviceKind::kCpu;
  int64_t index = 0;
  int64_t threads = 1;
  std::vector<int64_t> cores = {};
  std::optional<int64_t> memory_bytes;
  bool recompute = false;
  std::optional<EmulateConfig> emulate;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("kind", kind, "cpu is a slice of the processor");
    visit("index", index, "which of the GPUs; 0 for a cpu", at_least(0));
    visit("threads", threads, "threads of a cpu slice", in_range(1, 4096));
    visit(
        "cores", cores,
        "cores, as the system numbers them, that the threads of a cpu slice run on, as many as it "
        "has threads; empty: see pin");
    visit(
        "memory_bytes", memory_bytes,
        "memory that training may use, as `farstep profile` sees it; null: what is free, on a cpu "
        "shared out among the site's slices",
        at_least(1));
    visit("recompute", recompute,
          "keep of every block its input alone and run its forward again in backward: memory for "
          "larger micro-batches, slower steps, the same bits");
    visit("emulate", emulate, "emulate a slower device");
  }
};

// How a CPU makes matrix products: by the way that is measured to be the fastest, by the first that
// it has, in the order below, or by one way.
enum class CpuProducts {
  kMeasure,
  kFirst,
  kAmx,
  kAvx512Bf16,
  kAvx512,
  kAvx2,
  kMkl,
  kLibTorch,
};
inline std::span<const std::string_view> enum_names(CpuProducts) {
  static constexpr std::array<std::string_view, 8> kNames{"measure", "first", "amx", "avx512_bf16",
                                                          "avx512",  "avx2",  "mkl", "libtorch"};
  return kNames;
}

// How the site uses its processor, whatever its devices.
struct CpuConfig {
  std::optional<InstructionSet> instructions;
  CpuProducts products = CpuProducts::kMeasure;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("instructions", instructions,
          "widest vector and matrix instructions to use, in LibTorch as well: baseline, avx2, "
          "avx512, avx512_bf16 or amx; null: all that the processor has");
    visit("products", products,
          "how matrix products are made: measure takes the fastest way for each class of products, "
          "first the first that the processor has of amx, avx512_bf16, avx512, avx2, mkl and "
          "libtorch, which may be named too; a resumed run keeps what it measured, another run may "
          "choose otherwise, so name a way to repeat a run bit by bit");
  }
};

}  // namespace farstep
