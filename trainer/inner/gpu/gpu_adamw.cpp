// The GPU decides by itself whether a step is taken: norm, clipping and the test for finite numbers
// are kernels before the update. So the host can launch the next step without waiting for this one.
#include "trainer/inner/gpu/gpu_adamw.h"

#include <array>
#include <limits>
#include <optional>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/cuda/device_array.h"
#include "trainer/cuda/gpu_stream.h"
#include "trainer/cuda/pinned_array.h"
#include "trainer/inner/gpu/snapshot_stream.h"
#include "trainer/inner/optimizer/adamw_state.h"
#include "trainer/kernels/gpu/adamw.h"
#include "trainer/model/gpu_ops/gpu_library.h"

namespace farstep {

namespace {

template <typename T>
DeviceArray<T> on_gpu(const std::vector<T>& values) {
  return DeviceArray<T>(std::span<const T>(values));
}

// The groups' chunks, counted from the first group's first value.
std::vector<AdamWChunk> chunks_of(std::span<const ParameterSpec> groups) {
  auto stretches = decay_stretches(groups);
  for (auto& stretch : stretches) {
    stretch.begin -= groups.front().offset;
    stretch.end -= groups.front().offset;
  }
  return adamw_chunks(stretches);
}

class GpuAdamW : public Optimizer, private GpuUpdate {
 public:
  GpuAdamW(const AdamWConfig& config, Parameters& parameters, std::span<const ParameterSpec> groups)
      : config_(config),
        parameters_(parameters),
        device_(parameters.values().device()),
        begin_(groups.front().offset),
        state_(groups, device_),
        request_(1),
        outcome_(on_gpu(std::vector<StepOutcome>(1))),
        parts_(static_cast<std::size_t>(norm_parts(parameters.size()))),
        part_norm_(on_gpu(std::vector<double>(1))),
        chunks_(on_gpu(chunks_of(groups))) {
    FARSTEP_CHECK(groups.back().end() - begin_ == state_.first_moment.numel(),
                  "a GPU's AdamW updates one range of the flat vectors");
    // What was copied is there for every stream.
    FARSTEP_CUDA_CHECK(cudaDeviceSynchronize());
  }
  ~GpuAdamW() override { cudaDeviceSynchronize(); }  // steps that were launched use the memory

  double clip_and_update(double learning_rate, const std::optional<double>& clip_norm) override {
    request(learning_rate, clip_norm);
    launch(/*losses=*/nullptr, 0);
    fetch();
    return wait().gradient_norm;
  }
  GpuUpdate* gpu_update() override { return this; }

  NamedBuffers pull_state() override { return state_.pull(); }
  void push_state() override { state_.push(); }

  NamedBuffers start_snapshot(bool with_values) override {
    use_gpu(device_);
    std::vector<SnapshotStream::Source> sources{{"exp_avg", state_.first_moment},
                                                {"exp_avg_sq", state_.second_moment}};
    if (with_values) sources.push_back({"theta_local", parameters_.values()});
    auto buffers = snapshot_.start(sources, current_stream(device_));
    saved_step_ = state_.step;
    buffers.push_back(
        {"step", DType::kI64, {}, std::as_writable_bytes(std::span(&saved_step_, 1))});
    return buffers;
  }
  void copy_snapshot() override { snapshot_.wait(); }
  double held_seconds() const override { return 0; }

 private:
  // What the host writes and reads while the GPU works on the step.
  struct Slot {
    PinnedArray<StepRequest> request{1};
    PinnedArray<StepOutcome> outcome{1};
    PinnedArray<double> part_norm{1};
    GpuEvent fetched;
  };
  static constexpr int64_t kSlots = 2;  // as many steps as GpuUpdate allows

  Slot& slot(int64_t step) { return slots_[static_cast<std::size_t>(step % kSlots)]; }

  void request(double learning_rate, const std::optional<double>& clip_norm) override {
    FARSTEP_CHECK(num_fetched_ - num_waited_ < kSlots, "{} steps are launched", kSlots);
    use_gpu(device_);
    // One for each step under way: the GPU may not have read the last one yet.
    auto& requested = *slot(num_fetched_).request.data();
    requested = {
        .update = adamw_step(config_, state_.step + 1, learning_rate, /*gradient_factor=*/1),
        .clip_norm = clip_norm.value_or(std::numeric_limits<double>::infinity())};
    FARSTEP_CUDA_CHECK(cudaMemcpyAsync(request_.data(), &requested, sizeof(requested),
                                       cudaMemcpyHostToDevice, current_stream(device_)));
  }

  void launch_part_norm() override {
    FARSTEP_CUDA_CHECK(launch_norm(parameters_.gradients().const_data_ptr<float>(),
                                   parameters_.size(), parts_.data(), part_norm_.data(),
                                   current_stream(device_)));
  }

  void launch(const float* losses, int64_t count) override {
    const auto stream = current_stream(device_);
    // A checkpoint may still copy the moments that this update changes.
    snapshot_.hold_recordable(stream);
    const StepFigures figures{.gradients = parameters_.gradients().const_data_ptr<float>(),
                              .size = parameters_.size(),
                              .losses = losses,
                              .num_losses = count};
    BF16* const copy = parameters_.bf16_copy();
    const AdamWVectors vectors{.gradients = figures.gradients + begin_,
                               .values = parameters_.values().mutable_data_ptr<float>() + begin_,
                               .first_moments = state_.first_moment.mutable_data_ptr<float>(),
                               .second_moments = state_.second_moment.mutable_data_ptr<float>(),
                               .copy = copy == nullptr ? nullptr : copy + begin_};
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
    FARSTEP_CUDA_CHECK(cudaMemcpyAsync(used.part_norm.data(), part_norm_.data(), sizeof(double),
                                       cudaMemcpyDeviceToHost, stream));
    used.fetched.record(stream);
    // Counted as taken, because the next step's request comes before the outcome. wait() takes it
    // back.
    ++num_fetched_;
    ++state_.step;
    parameters_.note_update();
  }

  UpdateOutcome wait() override {
    FARSTEP_CHECK(num_waited_ < num_fetched_, "no step is launched");
    auto& used = slot(num_waited_);
    used.fetched.wait();
    ++num_waited_;
    const auto& outcome = *used.outcome.data();
    if (outcome.taken == 0) --state_.step;
    // The kernels refuse all steps after one that was not taken, until the host clears the outcome.
    if (outcome.taken == 0 && num_waited_ == num_fetched_) {
      FARSTEP_CUDA_CHECK(
          cudaMemsetAsync(outcome_.data(), 0, sizeof(StepOutcome), current_stream(device_)));
    }
    return {outcome.loss, outcome.gradient_norm, *used.part_norm.data(), outcome.taken != 0};
  }

  const AdamWConfig config_;
  Parameters& parameters_;
  const at::Device device_;
  const int64_t begin_;  // of the groups in the flat vectors
  AdamWState state_;
  DeviceArray<StepRequest> request_;
  DeviceArray<StepOutcome> outcome_;
  DeviceArray<double> parts_, part_norm_;
  const DeviceArray<AdamWChunk> chunks_;
  std::array<Slot, kSlots> slots_;
  int64_t num_fetched_ = 0, num_waited_ = 0;  // steps
  SnapshotStream snapshot_;
  int64_t saved_step_ = 0;  // state_.step of the snapshot
};

}  // namespace

std::unique_ptr<Optimizer> make_gpu_adamw(const AdamWConfig& config, Parameters& parameters,
                                          std::span<const ParameterSpec> groups) {
  if (!is_gpu(parameters.values().device())) return nullptr;
  use_gpu(parameters.values().device());
  return std::make_unique<GpuAdamW>(config, parameters, groups);
}

}  // namespace farstep
