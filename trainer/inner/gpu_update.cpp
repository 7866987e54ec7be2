#include "trainer/inner/gpu_update.h"

#include <vector>

#include "trainer/cuda/device_array.h"
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
        request_(1),
        outcome_(1),
        parts_(static_cast<std::size_t>(norm_parts(parameters.size()))),
        chunks_(on_gpu(adamw_chunks(stretches))) {}

  double run(const AdamWStep& step, double clip_norm, const at::Tensor& first_moment,
             const at::Tensor& second_moment) override {
    const auto device = parameters_.values().device();
    use_gpu(device);
    const auto stream = current_stream(device);
    const StepRequest request{.update = step, .clip_norm = clip_norm};
    FARSTEP_CUDA_CHECK(cudaMemcpyAsync(request_.data(), &request, sizeof(request),
                                       cudaMemcpyHostToDevice, stream));
    const AdamWVectors vectors{.gradients = parameters_.gradients().const_data_ptr<float>(),
                               .values = parameters_.values().mutable_data_ptr<float>(),
                               .first_moments = first_moment.mutable_data_ptr<float>(),
                               .second_moments = second_moment.mutable_data_ptr<float>(),
                               .copy = parameters_.bf16_copy()};
    FARSTEP_CUDA_CHECK(launch_step_outcome(vectors.gradients, parameters_.size(), request_.data(),
                                           parts_.data(), outcome_.data(), stream));
    FARSTEP_CUDA_CHECK(launch_adamw(request_.data(), outcome_.data(), chunks_.data(),
                                    static_cast<int64_t>(chunks_.size()), vectors, stream));
    StepOutcome outcome;
    FARSTEP_CUDA_CHECK(cudaMemcpyAsync(&outcome, outcome_.data(), sizeof(outcome),
                                       cudaMemcpyDeviceToHost, stream));
    FARSTEP_CUDA_CHECK(cudaStreamSynchronize(stream));
    if (outcome.taken != 0) parameters_.note_update();
    return outcome.gradient_norm;
  }

 private:
  Parameters& parameters_;
  DeviceArray<StepRequest> request_;
  DeviceArray<StepOutcome> outcome_;
  DeviceArray<double> parts_;
  const DeviceArray<AdamWChunk> chunks_;
};

}  // namespace

std::unique_ptr<GpuUpdate> make_gpu_update(Parameters& parameters,
                                           std::span<const DecayStretch> stretches) {
  use_gpu(parameters.values().device());
  return std::make_unique<KernelUpdate>(parameters, stretches);
}

}  // namespace farstep
