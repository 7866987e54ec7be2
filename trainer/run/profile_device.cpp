#include "trainer/run/profile_device.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <random>
#include <utility>

#include "heterogeneity/profile/device_memory.h"
#include "heterogeneity/profile/device_name.h"
#include "heterogeneity/profile/matrix_products.h"
#include "heterogeneity/profile/step_times.h"
#include "trainer/inner/emulated_speed.h"
#include "trainer/inner/inner_step.h"
#include "trainer/model/device.h"
#include "trainer/model/llama.h"

namespace farstep {

namespace {

constexpr int64_t kMostSequences = int64_t{1} << 20;
constexpr int64_t kMostRows = 8192;  // of a matrix product

// A model and its inner step on one device, made at the first step, trained on random tokens.
class ProbeTraining {
 public:
  ProbeTraining(const Workload& workload, at::Device device)
      : workload_(workload), device_(device) {}

  // Takes a whole inner step and returns when the device has done it.
  void step(int64_t batch, int64_t micro_batch) {
    if (!inner_) build();
    inner_->run(random_batch(batch), micro_batch, /*progress=*/0);
    synchronize(device_);
  }

 private:
  void build() {
    model_ = std::make_unique<Llama>(workload_.shape, device_, workload_.run.inner.compute);
    model_->parameters().initialise(static_cast<uint64_t>(workload_.run.seed));
    inner_ = std::make_unique<InnerStep>(*model_, workload_.run.inner);
  }

  TokenBatch random_batch(int64_t sequences) {
    TokenBatch batch{
        .sequences = sequences, .length = workload_.run.data.sequence_length, .tokens = {}};
    batch.tokens.resize(static_cast<std::size_t>(sequences * (batch.length + 1)));
    for (auto& token : batch.tokens) {
      token = static_cast<int64_t>(random_()) % workload_.shape.vocabulary;
    }
    return batch;
  }

  const Workload& workload_;
  const at::Device device_;
  std::minstd_rand random_;
  std::unique_ptr<Llama> model_;
  std::unique_ptr<InnerStep> inner_;
};

// Measures one device, probe after probe, into its profile.
class DeviceProbe {
 public:
  DeviceProbe(const Workload& workload, const DeviceConfig& config, Clock& clock,
              const std::stop_token& stop)
      : workload_(workload), config_(config), clock_(clock), stop_(stop) {}

  // False if stop was requested before the end.
  bool run(DeviceProfile& profile) {
    device_ = open_device(config_);
    profile.name = device_name(device_, config_.threads);
    return measure_training(profile) && measure_products(profile);
  }

 private:
  // The memory first: nothing else is on the device then.
  bool measure_training(DeviceProfile& profile) {
    const auto memory = open_device_memory(device_, config_.memory_bytes, workload_.cpu_slices);
    profile.memory_bytes = memory->bytes();
    ProbeTraining training(workload_, device_);
    profile.max_micro_batch = max_micro_batch(*memory, training);
    if (!profile.max_micro_batch) return false;
    if (*profile.max_micro_batch == 0) return true;
    auto emulate = config_.emulate;
    if (emulate) emulate->changes.clear();
    EmulatedSpeed speed(emulate);
    const auto timed = [&](int64_t batch, int64_t micro_batch) {
      const double begin = clock_.now_seconds();
      training.step(batch, micro_batch);
      clock_.sleep_until(begin + speed.step_lasts(clock_.now_seconds() - begin, batch));
      return clock_.now_seconds() - begin;
    };
    const auto times = measure_step_times(
        steps_to_time(workload_.micro_batch, *profile.max_micro_batch),
        [&](int64_t batch, int64_t micro_batch) { training.step(batch, micro_batch); }, timed,
        workload_.seconds, clock_, stop_);
    if (times) profile.step_seconds = *times;
    return times.has_value();
  }

  // Larger micro-batches than such whose step takes as long as a probe may are of no use: the
  // search ends there, though not before twice the planned micro-batch.
  std::optional<int64_t> max_micro_batch(DeviceMemory& memory, ProbeTraining& training) {
    int64_t most = kMostSequences;
    const auto fits = [&](int64_t sequences) {
      if (sequences > most) return false;
      double step_seconds = 0;
      const bool held = memory.holds(sequences, [&] {
        const double begin = clock_.now_seconds();
        training.step(sequences, sequences);
        step_seconds = clock_.now_seconds() - begin;
      });
      const bool is_enough = sequences >= 2 * workload_.micro_batch;
      if (held && is_enough && 2 * step_seconds > workload_.seconds) most = sequences;
      return held;
    };
    const auto found = largest_that_fits(fits, kMostSequences, stop_);
    if (found) {
      spdlog::info("micro-batch: {}{} fit into {} MiB", *found == most ? "at least " : "", *found,
                   memory.bytes() >> 20);
    }
    return found;
  }

  bool measure_products(DeviceProfile& profile) {
    const auto& shape = workload_.shape;
    const int64_t key_width = shape.kv_heads * shape.head_size();
    const int64_t micro_batch =
        std::min(workload_.micro_batch, std::max<int64_t>(1, profile.max_micro_batch.value_or(1)));
    const ProductProbe probe{
        .device = device_,
        .products = {{shape.hidden, shape.hidden, 2 * shape.layers},        // query, output
                     {shape.hidden, key_width, 2 * shape.layers},           // key, value
                     {shape.hidden, shape.intermediate, 2 * shape.layers},  // gate, up
                     {shape.intermediate, shape.hidden, shape.layers},      // down
                     {shape.hidden, shape.vocabulary, 1}},                  // head
        .rows = std::min(kMostRows, micro_batch * workload_.run.data.sequence_length),
        .seconds = workload_.seconds,
        .finish = [this] { synchronize(device_); }};
    const double slowness = config_.emulate ? config_.emulate->times.value_or(1) : 1;
    const std::pair<ProductType, std::optional<double>*> figures[] = {
        {ProductType::kFP16, &profile.fp16_tflops},
        {ProductType::kBF16, &profile.bf16_tflops},
        {ProductType::kTF32, &profile.tf32_tflops},
        {ProductType::kFP32, &profile.fp32_tflops}};
    for (const auto& [type, figure] : figures) {
      const auto tflops = measure_tflops(probe, type, clock_, stop_);
      if (stop_.stop_requested()) return false;
      if (tflops) *figure = *tflops / slowness;
    }
    return true;
  }

  const Workload& workload_;
  const DeviceConfig& config_;
  Clock& clock_;
  const std::stop_token stop_;
  at::Device device_ = at::kCPU;
};

}  // namespace

bool profile_device(const Workload& workload, const DeviceConfig& config, Clock& clock,
                    const std::stop_token& stop, DeviceProfile& profile) {
  return DeviceProbe(workload, config, clock, stop).run(profile);
}

}  // namespace farstep
