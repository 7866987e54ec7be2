#include "trainer/inner/gpu_update.h"

#include <array>
#include <vector>

#include "trainer/cuda/device_array.h"
#include "trainer/cuda/gpu_stream.h"
#include "trainer/cuda/pinned_array.h"
#include "trainer/kernels/gpu/adamw.h"
#include "trainer/model/gpu_library.h"

namespace farstep {

namespace {

template <typename T>
DeviceArray<T> on_gpu(const std::vector<T>& values) {
  return DeviceArray<T>(std::span<const T>(values));
}

class KernelUpdate : public GpuUpdate {
 public:
  KernelUpdate(Parameters& parameters, std::span<const DecayStretch> stretches)
      : parameters_(parameters),
        device_(parameters.values().device()),
        request_(1),
        outcome_(on_gpu(std::vector<StepOutcome>(1))),
        parts_(static_cast<std::size_t>(norm_parts(parameters.size()))),
        chunks_(on_gpu(adamw_chunks(stretches))) {
    // What was copied is there for every stream.
    FARSTEP_CUDA_CHECK(cudaDeviceSynchronize());
  }
  ~KernelUpdate() override { cudaDeviceSynchronize(); }  // steps under way use the memory

  void ask(const AdamWStep& step, double clip_norm) override {
    FARSTEP_CHECK(num_fetched_ - num_waited_ < kSlots, "{} steps are under way", kSlots);
    use_gpu(device_);
    auto& asked = *slot(num_fetched_).request.data();
    asked = {.update = step, .clip_norm = clip_norm};
    FARSTEP_CUDA_CHECK(cudaMemcpyAsync(request_.data(), &asked, sizeof(asked),
                                       cudaMemcpyHostToDevice, current_stream(device_)));
  }

  void give(const at::Tensor& first_moment, const at::Tensor& second_moment, const float* losses,
            int64_t count) override {
    const auto stream = current_stream(device_);
    const AdamWVectors vectors{.gradients = parameters_.gradients().const_data_ptr<float>(),
                               .values = parameters_.values().mutable_data_ptr<float>(),
                               .first_moments = first_moment.mutable_data_ptr<float>(),
                               .second_moments = second_moment.mutable_data_ptr<float>(),
                               .copy = parameters_.bf16_copy()};
    const StepFigures figures{.gradients = vectors.gradients,
                              .size = parameters_.size(),
                              .losses = losses,
                              .num_losses = count};
    FARSTEP_CUDA_CHECK(
        launch_step_outcome(figures, request_.data(), parts_.data(), outcome_.data(), stream));
    FARSTEP_CUDA_CHECK(launch_adamw(request_.data(), outcome_.data(), chunks_.data(),
                                    static_cast<int64_t>(chunks_.size()), vectors, stream));
  }

  void fetch() override {
    auto& used = slot(num_fetched_);
    const auto stream = current_stream(device_);
    FARSTEP_CUDA_CHECK(cudaMemcpyAsync(used.outcome.data(), outcome_.data(), sizeof(StepOutcome),
                                       cudaMemcpyDeviceToHost, stream));
    used.told.record(stream);
    ++num_fetched_;
    parameters_.note_update();
  }

  UpdateOutcome wait() override {
    FARSTEP_CHECK(num_waited_ < num_fetched_, "no step is under way");
    auto& used = slot(num_waited_);
    used.told.wait();
    ++num_waited_;
    const auto& outcome = *used.outcome.data();
    if (outcome.taken == 0 && num_waited_ == num_fetched_) {
      FARSTEP_CUDA_CHECK(
          cudaMemsetAsync(outcome_.data(), 0, sizeof(StepOutcome), current_stream(device_)));
    }
    return {outcome.loss, outcome.gradient_norm, outcome.taken != 0};
  }

 private:
  // What the host writes and reads while the GPU works on the step.
  struct Slot {
    PinnedArray<StepRequest> request{1};
    PinnedArray<StepOutcome> outcome{1};
    GpuEvent told;
  };
  static constexpr int64_t kSlots = 2;

  Slot& slot(int64_t step) { return slots_[static_cast<std::size_t>(step % kSlots)]; }

  Parameters& parameters_;
  const at::Device device_;
  DeviceArray<StepRequest> request_;
  DeviceArray<StepOutcome> outcome_;
  DeviceArray<double> parts_;
  const DeviceArray<AdamWChunk> chunks_;
  std::array<Slot, kSlots> slots_;
  int64_t num_fetched_ = 0, num_waited_ = 0;  // steps
};

}  // namespace

std::unique_ptr<GpuUpdate> make_gpu_update(Parameters& parameters,
                                           std::span<const DecayStretch> stretches) {
  if (!is_gpu(parameters.values().device())) return nullptr;
  use_gpu(parameters.values().device());
  return std::make_unique<KernelUpdate>(parameters, stretches);
}

}  // namespace farstep
