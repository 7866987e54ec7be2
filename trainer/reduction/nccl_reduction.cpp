#include "trainer/reduction/nccl_reduction.h"

#include <dlfcn.h>
#include <nccl.h>

#include <condition_variable>
#include <mutex>

#include "trainer/base/error.h"
#include "trainer/cuda/gpu_stream.h"
#include "trainer/reduction/gradient_buckets.h"

namespace farstep {

namespace {

// NCCL's functions from the library that comes with LibTorch: loaded on first use, never unloaded.
struct NcclLibrary {
  decltype(&ncclCommInitAll) init_all = function<decltype(&ncclCommInitAll)>("ncclCommInitAll");
  decltype(&ncclAllReduce) all_reduce = function<decltype(&ncclAllReduce)>("ncclAllReduce");
  decltype(&ncclGroupStart) group_start = function<decltype(&ncclGroupStart)>("ncclGroupStart");
  decltype(&ncclGroupEnd) group_end = function<decltype(&ncclGroupEnd)>("ncclGroupEnd");
  decltype(&ncclCommDestroy) destroy = function<decltype(&ncclCommDestroy)>("ncclCommDestroy");
  decltype(&ncclCommAbort) abort = function<decltype(&ncclCommAbort)>("ncclCommAbort");
  decltype(&ncclGetErrorString) error_string =
      function<decltype(&ncclGetErrorString)>("ncclGetErrorString");

  void check(ncclResult_t result, const char* call) const {
    if (result == ncclSuccess) return;
    throw InternalError(fmt::format("{}: {}", call, error_string(result)));
  }

 private:
  template <typename Function>
  static Function function(const char* name) {
    void* const library = dlopen("libnccl.so.2", RTLD_NOW);
    void* const found = library == nullptr ? nullptr : dlsym(library, name);
    if (found == nullptr) {
      throw ConfigError(fmt::format(
          "inner.reduction: NCCL cannot be loaded ({}); put the folder of LibTorch's libnccl.so.2 "
          "into LD_LIBRARY_PATH, or set it to master",
          dlerror()));
    }
    return reinterpret_cast<Function>(found);
  }
};

// Makes a GPU the calling thread's current one until it is destroyed.
class CurrentGpu {
 public:
  // The GPU that was current is restored at the end, because the caller's own work relies on it.
  explicit CurrentGpu(int gpu) {
    FARSTEP_CUDA_CHECK(cudaGetDevice(&before_));
    FARSTEP_CUDA_CHECK(cudaSetDevice(gpu));
  }
  ~CurrentGpu() { cudaSetDevice(before_); }
  CurrentGpu(const CurrentGpu&) = delete;
  CurrentGpu& operator=(const CurrentGpu&) = delete;

 private:
  int before_ = 0;
};

// One GPU's part. Must be constructed while that GPU is the current one.
struct Rank {
  Rank(GpuGradients gpu_gradients, const GradientBuckets& all)
      : gradients(std::move(gpu_gradients)), buckets(all) {}

  cudaStream_t training() const { return static_cast<cudaStream_t>(gradients.current_stream()); }
  // Makes later work of `later` wait for the present work of `earlier`.
  void order(cudaStream_t earlier, cudaStream_t later) {
    event.record(earlier);
    event.hold(later);
  }

  const GpuGradients gradients;
  GradientBuckets buckets;
  std::size_t num_sent = 0;
  const GpuStream side;
  GpuEvent event;
  std::mutex mutex;           // guards comm, because abandon() may run in another thread
  ncclComm_t comm = nullptr;  // null once aborted
};

class NcclReduction : public SiteReduction {
 public:
  NcclReduction(std::vector<GpuGradients> gpus, int64_t size, int64_t bucket_values) {
    const GradientBuckets buckets(size, bucket_values);
    std::vector<int> indices;
    for (auto& gpu : gpus) {
      indices.push_back(gpu.gpu);
      const CurrentGpu current(gpu.gpu);
      ranks_.push_back(std::make_unique<Rank>(std::move(gpu), buckets));
    }
    std::vector<ncclComm_t> comms(ranks_.size());
    nccl_.check(nccl_.init_all(comms.data(), static_cast<int>(comms.size()), indices.data()),
                "ncclCommInitAll");
    for (std::size_t i = 0; i < comms.size(); ++i) ranks_[i]->comm = comms[i];
    connect(buckets);
  }
  ~NcclReduction() override {
    for (const auto& rank : ranks_) {
      if (rank->comm != nullptr) nccl_.destroy(rank->comm);
    }
  }

  void begin_step() override {
    const std::lock_guard lock(mutex_);
    FARSTEP_CHECK(!is_abandoned_, "a step was abandoned, and NCCL aborted with it");
    num_finishing_ = 0;
    for (const auto& rank : ranks_) {
      rank->buckets.restart();
      rank->num_sent = 0;
    }
  }

  // The side stream waits for the training stream once for all buckets that are final now. Backward
  // goes on beside the reduction.
  void ready(std::size_t device, int64_t begin, int64_t end) override {
    auto& rank = *ranks_.at(device);
    rank.buckets.add(begin, end);
    if (rank.num_sent == rank.buckets.num_final()) return;
    const CurrentGpu current(rank.gradients.gpu);
    const std::lock_guard lock(rank.mutex);
    if (rank.comm == nullptr) return;
    rank.order(rank.training(), rank.side.get());
    while (rank.num_sent < rank.buckets.num_final()) {
      send(rank, rank.buckets.bucket(rank.num_sent++));
    }
  }

  bool finish(std::size_t device) override {
    auto& rank = *ranks_.at(device);
    std::unique_lock lock(mutex_);
    FARSTEP_CHECK(is_abandoned_ || rank.num_sent == rank.buckets.count(),
                  "device {} has sent {} buckets of {}", device, rank.num_sent,
                  rank.buckets.count());
    ++num_finishing_;
    changed_.notify_all();
    // A GPU completes a reduction only if every GPU has launched it; so all threads wait here.
    // Otherwise a step that another one abandons would leave this GPU in a reduction for ever.
    changed_.wait(lock, [&] { return is_abandoned_ || num_finishing_ == ranks_.size(); });
    if (is_abandoned_) return false;
    const CurrentGpu current(rank.gradients.gpu);
    rank.order(rank.side.get(), rank.training());
    return true;
  }

  // Aborting the communicators releases GPUs that wait in a reduction for the failed one.
  void abandon() override {
    {
      const std::lock_guard lock(mutex_);
      is_abandoned_ = true;
      changed_.notify_all();
    }
    for (const auto& rank : ranks_) {
      const std::lock_guard lock(rank->mutex);
      if (rank->comm != nullptr) nccl_.abort(rank->comm);
      rank->comm = nullptr;
    }
  }

 private:
  // NCCL opens connections at the first reduction of a size, and its call then waits for all ranks.
  // In a step abandon() could not end such a wait.
  void connect(const GradientBuckets& buckets) {
    for (std::size_t number = 0; number < buckets.count(); ++number) {
      nccl_.check(nccl_.group_start(), "ncclGroupStart");
      for (const auto& rank : ranks_) send(*rank, buckets.bucket(number));
      nccl_.check(nccl_.group_end(), "ncclGroupEnd");
    }
    for (const auto& rank : ranks_) {
      const CurrentGpu current(rank->gradients.gpu);
      FARSTEP_CUDA_CHECK(cudaStreamSynchronize(rank->side.get()));
    }
  }

  void send(Rank& rank, const Bucket& bucket) const {
    float* const values = rank.gradients.values + bucket.begin;
    nccl_.check(nccl_.all_reduce(values, values, static_cast<std::size_t>(bucket.size()),
                                 ncclFloat32, ncclSum, rank.comm, rank.side.get()),
                "ncclAllReduce");
  }

  const NcclLibrary nccl_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::mutex mutex_;  // guards all members below
  std::condition_variable changed_;
  std::size_t num_finishing_ = 0;  // devices
  bool is_abandoned_ = false;
};

}  // namespace

std::unique_ptr<SiteReduction> make_nccl_reduction(std::vector<GpuGradients> gpus, int64_t size,
                                                   int64_t bucket_values) {
  return std::make_unique<NcclReduction>(std::move(gpus), size, bucket_values);
}

}  // namespace farstep
