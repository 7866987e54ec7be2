// Two steps take turns in two sets of buffers. While the GPU runs one, the host copies the examples
// of the next into the other set and launches its work behind it.
#include "trainer/inner/gpu/gpu_step.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "trainer/cuda/device_array.h"
#include "trainer/cuda/gpu_stream.h"
#include "trainer/cuda/pinned_array.h"
#include "trainer/model/batch_tensors.h"
#include "trainer/model/gpu_ops/gpu_library.h"

namespace farstep {

namespace {

// Steps under way: the one that the GPU runs, and the next, so that the GPU never waits for the
// host. More steps would only delay their outcomes.
constexpr int64_t kSlots = 2;

// A part begins at a multiple of this, as a GPU reads whole lines of its memory.
constexpr std::size_t kAlignment = 256;

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::size_t bytes_of(const BatchView& batch) {
  std::size_t bytes = 0;
  for (const auto& part : batch.parts) bytes += aligned(part.bytes.size());
  return bytes;
}

// Memory for the examples of a step, and for the losses of its micro-batches.
struct Room {
  Room(std::size_t bytes, std::size_t losses) : current(bytes), losses(losses) {
    for (auto& slot : slots) slot.emplace(bytes);
  }

  // The buffers of every second step.
  struct Slot {
    explicit Slot(std::size_t bytes) : host(bytes), ahead(bytes) {}
    PinnedArray<std::byte> host;
    DeviceArray<std::byte> ahead;
    GpuEvent copied;
  };
  std::array<std::optional<Slot>, kSlots> slots;
  DeviceArray<std::byte> current;  // where all steps read them
  DeviceArray<float> losses;
};

class KernelStep : public GpuStep {
 public:
  KernelStep(TrainableModel& model, GpuUpdate& update, const std::optional<double>& clip_norm,
             std::unique_ptr<StepRecorder> recorder)
      : model_(model),
        update_(update),
        clip_norm_(clip_norm),
        device_(model.parameters().values().device()),
        graphs_(std::move(recorder)) {}
  ~KernelStep() override { cudaDeviceSynchronize(); }  // steps under way use the memory

  void start(const BatchView& batch, int64_t micro_batch, const StepSettings& settings) override {
    FARSTEP_CHECK(num_under_way() < kSlots, "{} steps are under way", kSlots);
    use_gpu(device_);
    const auto stream = current_stream(device_);
    make_room(batch, micro_batch);
    copy_ahead(batch);
    auto& step = steps_[static_cast<std::size_t>(num_started_ % kSlots)];
    step.settings = settings;
    step.tokens = batch.targets;
    step.examples = batch.examples;
    step.first_part = std::min(micro_batch, batch.examples);
    auto& slot = *room_->slots[static_cast<std::size_t>(num_started_ % kSlots)];
    // The step's time begins when its examples are there.
    slot.copied.hold(stream);
    step.begin.record(stream);
    // A graph reads from one place, while examples of the next step arrive in another. The copy
    // inside the GPU is of some kilobytes.
    FARSTEP_CUDA_CHECK(cudaMemcpyAsync(room_->current.data(), slot.ahead.data(), bytes_of(batch),
                                       cudaMemcpyDeviceToDevice, stream));
    model_.parameters().bf16_values();  // before the recording, if values were pushed
    update_.request(settings.learning_rate, clip_norm_);
    graphs_.run(
        {batch.examples, batch.targets, micro_batch}, [this] { return memory(); },
        [&] { launch(batch, micro_batch); });
    step.end.record(stream);
    // Outside the graph, since each step has a place of its own for its outcome.
    update_.fetch();
    ++num_started_;
  }

  Outcome finish() override {
    FARSTEP_CHECK(num_under_way() > 0, "no step is under way");
    auto& step = steps_[static_cast<std::size_t>(num_finished_ % kSlots)];
    ++num_finished_;
    const auto outcome = update_.wait();
    return {step.settings, step.tokens, outcome, step.end.seconds_since(step.begin),
            noise_of(step, outcome)};
  }

  int64_t num_under_way() const override { return num_started_ - num_finished_; }

 private:
  // The host's data of a step under way.
  struct Step {
    StepSettings settings;
    int64_t tokens = 0, examples = 0;
    int64_t first_part = 0;  // examples of the first micro-batch
    GpuEvent begin, end;
  };

  static std::optional<heterogeneity::GradientNoise> noise_of(const Step& step,
                                                              const UpdateOutcome& outcome) {
    if (step.first_part == step.examples || !outcome.taken) return std::nullopt;
    const auto examples = static_cast<double>(step.examples);
    const auto first = static_cast<double>(step.first_part);
    // The part's gradient was divided by the size of the whole batch.
    const double norm = outcome.part_norm * examples / first;
    const heterogeneity::MeanGradient part{first, norm * norm};
    const heterogeneity::MeanGradient whole{examples,
                                            outcome.gradient_norm * outcome.gradient_norm};
    return noise_of_step({&part, 1}, whole, examples);
  }

  // Returns a number that grows whenever the memory of the work changes.
  int64_t memory() const {
    return *model_.recordable_memory() + static_cast<int64_t>(room_->current.size()) +
           static_cast<int64_t>(room_->losses.size());
  }

  void make_room(const BatchView& batch, int64_t micro_batch) {
    std::size_t bytes = bytes_of(batch);
    auto losses = static_cast<std::size_t>((batch.examples + micro_batch - 1) / micro_batch);
    if (room_) {
      if (bytes <= room_->current.size() && losses <= room_->losses.size()) return;
      bytes = std::max(bytes, room_->current.size());
      losses = std::max(losses, room_->losses.size());
      FARSTEP_CUDA_CHECK(cudaDeviceSynchronize());  // a step under way uses what there is
    }
    room_.emplace(bytes, losses);
  }

  void copy_ahead(const BatchView& batch) {
    auto& slot = *room_->slots[static_cast<std::size_t>(num_started_ % kSlots)];
    auto* next = slot.host.data();
    for (const auto& part : batch.parts) {
      std::ranges::copy(part.bytes, next);
      next += aligned(part.bytes.size());
    }
    FARSTEP_CUDA_CHECK(cudaMemcpyAsync(slot.ahead.data(), slot.host.data(), bytes_of(batch),
                                       cudaMemcpyHostToDevice, copies_.get()));
    slot.copied.record(copies_.get());
  }

  // Returns the tensors of examples [first, first + count) in `current`.
  std::vector<at::Tensor> micro_batch_of(const BatchView& batch, int64_t first, int64_t count) {
    std::vector<at::Tensor> tensors;
    auto* begin = room_->current.data();
    for (const auto& part : batch.parts) {
      const auto row = static_cast<int64_t>(part.bytes.size()) / batch.examples;
      std::vector<int64_t> shape{count};
      shape.insert(shape.end(), part.shape.begin(), part.shape.end());
      tensors.push_back(at::for_blob(begin + first * row, shape)
                            .options(at::TensorOptions(device_).dtype(scalar_type(part.dtype)))
                            .target_device(device_)
                            .make_tensor());
      begin += aligned(part.bytes.size());
    }
    return tensors;
  }

  // Launches the work of a step; it is the same for all batches of that shape.
  void launch(const BatchView& batch, int64_t micro_batch) {
    const double scale = 1.0 / static_cast<double>(batch.targets);
    int64_t parts = 0;
    for (int64_t done = 0; done < batch.examples; done += micro_batch) {
      const int64_t count = std::min(micro_batch, batch.examples - done);
      const auto loss = model_.backpropagate(micro_batch_of(batch, done, count),
                                             {.scale = scale, .add = done > 0});
      if (done == 0 && count < batch.examples) update_.launch_part_norm();
      FARSTEP_CUDA_CHECK(cudaMemcpyAsync(room_->losses.data() + parts++,
                                         loss.const_data_ptr<float>(), sizeof(float),
                                         cudaMemcpyDeviceToDevice, current_stream(device_)));
    }
    update_.launch(room_->losses.data(), parts);
  }

  TrainableModel& model_;
  GpuUpdate& update_;
  const std::optional<double> clip_norm_;
  const at::Device device_;
  GpuStream copies_;
  std::optional<Room> room_;
  std::array<Step, kSlots> steps_;
  StepGraphs graphs_;
  int64_t num_started_ = 0, num_finished_ = 0;
};

}  // namespace

std::unique_ptr<GpuStep> make_gpu_step(TrainableModel& model, GpuUpdate& update,
                                       const std::optional<double>& clip_norm,
                                       std::unique_ptr<StepRecorder> recorder) {
  use_gpu(model.parameters().values().device());
  return std::make_unique<KernelStep>(model, update, clip_norm, std::move(recorder));
}

}  // namespace farstep
