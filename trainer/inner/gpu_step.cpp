#include "trainer/inner/gpu_step.h"

#include <algorithm>
#include <array>
#include <optional>

#include "trainer/cuda/device_array.h"
#include "trainer/cuda/gpu_stream.h"
#include "trainer/cuda/pinned_array.h"
#include "trainer/model/gpu_library.h"

namespace farstep {

namespace {

constexpr int64_t kSlots = 2;  // steps under way

// Room for the tokens of a step, and for the losses of its micro-batches.
struct Room {
  Room(std::size_t tokens, std::size_t losses) : current(tokens), losses(losses) {
    for (auto& slot : slots) slot.emplace(tokens);
  }

  // Of every other step.
  struct Slot {
    explicit Slot(std::size_t tokens) : host(tokens), ahead(tokens) {}
    PinnedArray<int64_t> host;
    DeviceArray<int64_t> ahead;
    GpuEvent copied;
  };
  std::array<std::optional<Slot>, kSlots> slots;
  DeviceArray<int64_t> current;  // where all steps read them
  DeviceArray<float> losses;
};

class KernelStep : public GpuStep {
 public:
  KernelStep(TrainableModel& model, DeferredUpdate& update, const std::optional<double>& clip_norm,
             std::unique_ptr<WorkRecorder> recorder)
      : model_(model),
        update_(update),
        clip_norm_(clip_norm),
        device_(model.parameters().values().device()),
        graphs_(std::move(recorder)) {}
  ~KernelStep() override { cudaDeviceSynchronize(); }  // steps under way use the memory

  void start(const TokenBatch& batch, int64_t micro_batch, double learning_rate) override {
    FARSTEP_CHECK(num_under_way() < kSlots, "{} steps are under way", kSlots);
    use_gpu(device_);
    const auto stream = current_stream(device_);
    make_room(batch, micro_batch);
    copy_ahead(batch);
    auto& times = times_[static_cast<std::size_t>(num_started_ % kSlots)];
    auto& slot = *room_->slots[static_cast<std::size_t>(num_started_ % kSlots)];
    slot.copied.hold(stream);
    times.begin.record(stream);
    FARSTEP_CUDA_CHECK(cudaMemcpyAsync(room_->current.data(), slot.ahead.data(),
                                       batch.tokens.size() * sizeof(int64_t),
                                       cudaMemcpyDeviceToDevice, stream));
    model_.parameters().bf16_values();  // made anew where values were pushed, which is not recorded
    update_.ask(learning_rate, clip_norm_);
    const StepShape shape{batch.sequences, batch.length, micro_batch};
    graphs_.run(
        shape, [this] { return memory(); }, [this, &shape] { give(shape); });
    times.end.record(stream);
    update_.fetch();
    ++num_started_;
  }

  Outcome finish() override {
    FARSTEP_CHECK(num_under_way() > 0, "no step is under way");
    auto& times = times_[static_cast<std::size_t>(num_finished_ % kSlots)];
    ++num_finished_;
    const auto outcome = update_.wait();
    return {outcome, times.end.seconds_since(times.begin)};
  }

  int64_t num_under_way() const override { return num_started_ - num_finished_; }

 private:
  struct Times {
    GpuEvent begin, end;
  };

  // Grows with every change of where the work is done.
  int64_t memory() const {
    return *model_.recordable_memory() + static_cast<int64_t>(room_->current.size()) +
           static_cast<int64_t>(room_->losses.size());
  }

  void make_room(const TokenBatch& batch, int64_t micro_batch) {
    std::size_t tokens = batch.tokens.size();
    auto losses = static_cast<std::size_t>((batch.sequences + micro_batch - 1) / micro_batch);
    if (room_) {
      if (tokens <= room_->current.size() && losses <= room_->losses.size()) return;
      tokens = std::max(tokens, room_->current.size());
      losses = std::max(losses, room_->losses.size());
      FARSTEP_CUDA_CHECK(cudaDeviceSynchronize());  // a step under way uses what there is
    }
    room_.emplace(tokens, losses);
  }

  void copy_ahead(const TokenBatch& batch) {
    auto& slot = *room_->slots[static_cast<std::size_t>(num_started_ % kSlots)];
    std::ranges::copy(batch.tokens, slot.host.data());
    FARSTEP_CUDA_CHECK(cudaMemcpyAsync(slot.ahead.data(), slot.host.data(),
                                       batch.tokens.size() * sizeof(int64_t),
                                       cudaMemcpyHostToDevice, copies_.get()));
    slot.copied.record(copies_.get());
  }

  // The work of a step of that shape.
  void give(const StepShape& shape) {
    const int64_t row = shape.length + 1;
    const double scale = 1.0 / static_cast<double>(shape.sequences * shape.length);
    int64_t parts = 0;
    for (int64_t done = 0; done < shape.sequences; done += shape.micro_batch) {
      const int64_t count = std::min(shape.micro_batch, shape.sequences - done);
      const auto tokens = at::for_blob(room_->current.data() + done * row, {count, row})
                              .options(at::TensorOptions(device_).dtype(at::kLong))
                              .target_device(device_)
                              .make_tensor();
      const auto loss = model_.backpropagate(tokens, {.scale = scale, .add = done > 0});
      FARSTEP_CUDA_CHECK(cudaMemcpyAsync(room_->losses.data() + parts++,
                                         loss.const_data_ptr<float>(), sizeof(float),
                                         cudaMemcpyDeviceToDevice, current_stream(device_)));
    }
    update_.give(room_->losses.data(), parts);
  }

  TrainableModel& model_;
  DeferredUpdate& update_;
  const std::optional<double> clip_norm_;
  const at::Device device_;
  GpuStream copies_;
  std::optional<Room> room_;
  std::array<Times, kSlots> times_;
  StepGraphs graphs_;
  int64_t num_started_ = 0, num_finished_ = 0;
};

}  // namespace

std::unique_ptr<GpuStep> make_gpu_step(TrainableModel& model, DeferredUpdate& update,
                                       const std::optional<double>& clip_norm,
                                       std::unique_ptr<WorkRecorder> recorder) {
  use_gpu(model.parameters().values().device());
  return std::make_unique<KernelStep>(model, update, clip_norm, std::move(recorder));
}

}  // namespace farstep
