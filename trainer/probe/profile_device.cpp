// The order of the probes follows from memory: the search needs an empty device, the steps need the
// model that the search has built, and the products need the model's memory back.
#include "trainer/probe/profile_device.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include "heterogeneity/profile/device_memory.h"
#include "heterogeneity/profile/device_name.h"
#include "heterogeneity/profile/step_times.h"
#include "trainer/base/processor/instruction_set.h"
#include "trainer/inner/emulated_speed.h"
#include "trainer/inner/inner_step.h"
#include "trainer/model/device.h"
#include "trainer/model/matmul/product_choice.h"
#include "trainer/probe/device_heap.h"
#include "trainer/probe/device_products.h"

namespace farstep {

namespace {

// Limits for devices with much memory: of the search, and of the memory and time of a product.
constexpr int64_t kMostSequences = int64_t{1} << 20;
constexpr int64_t kMostRows = 8192;  // of a matrix product

// A model and its inner step on one device, made at the first step, trained on random examples.
class ProbeTraining {
 public:
  ProbeTraining(const Workload& workload, at::Device device, bool recompute)
      : workload_(workload), device_(device), recompute_(recompute) {}

  // Takes a whole inner step and waits for the device.
  void step(int64_t batch, int64_t micro_batch) {
    if (!inner_) build();
    // Random examples: the time of a step does not depend on what they are.
    const auto examples = workload_.model->random_batch(batch, random_);
    inner_->run(examples.view, micro_batch, /*rate_share=*/0);
    synchronize(device_);
  }

 private:
  void build() {
    model_ = workload_.model->make(device_, recompute_);
    model_->parameters().initialise(static_cast<uint64_t>(workload_.run.seed));
    inner_ = std::make_unique<InnerStep>(*model_, workload_.run.inner);
  }

  const Workload& workload_;
  const at::Device device_;
  const bool recompute_;
  std::minstd_rand random_;
  std::unique_ptr<TrainableModel> model_;
  std::unique_ptr<InnerStep> inner_;
};

// Measures one device, probe after probe, into its profile.
class DeviceProbe {
 public:
  DeviceProbe(const Workload& workload, const DeviceConfig& config, Clock& clock,
              heterogeneity::DeviceProfile& profile)
      : workload_(workload),
        config_(config),
        clock_(clock),
        device_(open_device(config)),
        training_(std::in_place, workload, device_, config.recompute),
        profile_(profile) {
    profile_.name = device_.is_cpu() ? heterogeneity::cpu_name(config.threads)
                                     : heterogeneity::gpu_name(device_.index());
    if (config.kind != DeviceKind::kCpu) return;
    profile_.instructions = instruction_set();
    choose_products_once(workload.products, workload.run.inner.compute);
    profile_.products = workload.run.inner.compute == ComputeType::kFP32 ? describe_choice<float>()
                                                                         : describe_choice<BF16>();
  }

  // First, while the device is empty. The search ends at a micro-batch whose trial takes longer
  // than a probe may, but not before twice the planned one.
  void measure_memory() {
    const auto memory = device_.is_cpu() ? heterogeneity::open_cpu_memory(config_.memory_bytes,
                                                                          workload_.cpu_slices)
                                         : open_heap_memory(heap_of(device_), config_.memory_bytes);
    int64_t most = kMostSequences;
    const auto fits = [&](int64_t sequences) {
      if (sequences > most) return false;
      const double begin = clock_.now_seconds();
      const bool held = memory->holds(sequences, [&] { training_->step(sequences, sequences); });
      const bool is_long = clock_.now_seconds() - begin > workload_.seconds;
      if (held && is_long && sequences >= 2 * workload_.micro_batch) most = sequences;
      return held;
    };
    const auto found = heterogeneity::largest_that_fits(fits, kMostSequences);
    spdlog::info("micro-batch: {}{} fit into {} MiB", found == most ? "at least " : "", found,
                 memory->bytes() >> 20);
    profile_.memory_bytes = memory->bytes();
    profile_.max_micro_batch = found;
  }

  void measure_steps() {
    if (profile_.max_micro_batch == 0) return;
    auto emulate = config_.emulate;
    // A profile is of the speed at the beginning; the planner learns changes from the run.
    if (emulate) emulate->changes.clear();
    EmulatedSpeed speed(emulate);
    const auto untimed = [&](int64_t batch, int64_t micro_batch) {
      training_->step(batch, micro_batch);
    };
    const auto timed = [&](int64_t batch, int64_t micro_batch) {
      const double begin = clock_.now_seconds();
      training_->step(batch, micro_batch);
      clock_.sleep_until(begin + speed.step_lasts(clock_.now_seconds() - begin, batch));
      return clock_.now_seconds() - begin;
    };
    profile_.step_seconds = heterogeneity::measure_step_times(
        heterogeneity::steps_to_time(workload_.micro_batch, *profile_.max_micro_batch), untimed,
        timed, workload_.seconds, clock_);
  }

  // Last: the model is destroyed first to free its memory.
  void measure_products() {
    training_.reset();
    const int64_t micro_batch =
        std::clamp<int64_t>(*profile_.max_micro_batch, 1, workload_.micro_batch);
    const DeviceProducts wanted{
        .device = device_,
        .products = workload_.model->products(),
        .rows = std::min(kMostRows, micro_batch * workload_.model->rows_per_example()),
        .seconds = workload_.seconds};
    const double slowness = config_.emulate ? config_.emulate->times.value_or(1) : 1;
    const auto measure = [&](ProductType type) {
      auto tflops = measure_tflops(wanted, type, clock_);
      if (tflops) *tflops /= slowness;
      return tflops;
    };
    profile_.fp16_tflops = measure(ProductType::kFP16);
    profile_.bf16_tflops = measure(ProductType::kBF16);
    profile_.tf32_tflops = measure(ProductType::kTF32);
    profile_.fp32_tflops = measure(ProductType::kFP32);
  }

 private:
  const Workload& workload_;
  const DeviceConfig& config_;
  Clock& clock_;
  const at::Device device_;
  std::optional<ProbeTraining> training_;
  heterogeneity::DeviceProfile& profile_;
};

}  // namespace

void profile_device(const Workload& workload, const DeviceConfig& config, Clock& clock,
                    const std::function<void(const heterogeneity::DeviceProfile&)>& hand_over) {
  heterogeneity::DeviceProfile profile;
  DeviceProbe probe(workload, config, clock, profile);
  probe.measure_memory();
  hand_over(profile);
  probe.measure_steps();
  // After each probe: an interrupt or a failure then leaves the figures before it.
  hand_over(profile);
  probe.measure_products();
  hand_over(profile);
}

}  // namespace farstep
