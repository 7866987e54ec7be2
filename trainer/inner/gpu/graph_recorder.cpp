#include "trainer/inner/gpu/graph_recorder.h"

#include <c10/cuda/CUDACachingAllocator.h>

#include <atomic>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

#include "trainer/cuda/cuda_check.h"
#include "trainer/cuda/graph_memsets.h"
#include "trainer/model/gpu_ops/gpu_library.h"

namespace farstep {

namespace {

// Returns whether `stream` is recorded together with `main`: it is `main` or was forked from it.
bool is_recorded_with(cudaStream_t main, cudaStream_t stream) {
  if (stream == main) return true;
  const auto recording_of = [](cudaStream_t own) {
    auto status = cudaStreamCaptureStatusNone;
    unsigned long long recording = 0;  // the runtime's type
    const auto error = cudaStreamGetCaptureInfo(own, &status, &recording);
    if (error != cudaSuccess) cudaGetLastError();  // or the next check would find it
    return error == cudaSuccess && status == cudaStreamCaptureStatusActive ? recording : 0;
  };
  const auto recording = recording_of(main);
  return recording != 0 && recording_of(stream) == recording;
}

// A memory pool for allocations of a stream, and of streams forked from it, while the pool is open.
// LibTorch reuses the memory only after this object is destroyed.
class AllocationPool {
 public:
  AllocationPool(at::Device device, cudaStream_t stream) : device_(device), id_(new_id()) {
    // Frees the memory that the unrecorded work used: there may be no room for both.
    allocator().emptyCache();
    allocator().beginAllocateToPool(device_.index(), id_, [stream](cudaStream_t other) {
      return is_recorded_with(stream, other);
    });
  }
  ~AllocationPool() {
    if (is_open_) close();
    allocator().releasePool(device_.index(), id_);
  }
  AllocationPool(const AllocationPool&) = delete;
  AllocationPool& operator=(const AllocationPool&) = delete;

  void close() {
    is_open_ = false;
    allocator().endAllocateToPool(device_.index(), id_);
  }

 private:
  // LibTorch's allocator registers itself when its library is loaded, and is all virtual functions.
  static c10::cuda::CUDACachingAllocator::CUDAAllocator& allocator() {
    return static_cast<c10::cuda::CUDACachingAllocator::CUDAAllocator&>(
        *c10::GetAllocator(at::kCUDA));
  }
  // Far from the ids that LibTorch assigns to its own pools.
  static c10::MempoolId_t new_id() {
    static std::atomic<c10::CaptureId_t> next = c10::CaptureId_t{1} << 48;
    return {0, next++};
  }

  const at::Device device_;
  const c10::MempoolId_t id_;
  bool is_open_ = true;
};

struct DestroyGraph {
  void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
};
using Graph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, DestroyGraph>;

class GraphRecording : public Recording {
 public:
  GraphRecording(at::Device device, std::unique_ptr<AllocationPool> pool, const Graph& graph)
      : device_(device), pool_(std::move(pool)) {
    turn_memsets_into_kernels(graph.get());
    FARSTEP_CUDA_CHECK(cudaGraphInstantiateWithFlags(&executable_, graph.get(),
                                                     cudaGraphInstantiateFlagAutoFreeOnLaunch));
  }
  ~GraphRecording() override {
    cudaStreamSynchronize(current_stream(device_));  // it may be running
    cudaGraphExecDestroy(executable_);
  }
  GraphRecording(const GraphRecording&) = delete;
  GraphRecording& operator=(const GraphRecording&) = delete;

  void replay() override {
    FARSTEP_CUDA_CHECK(cudaGraphLaunch(executable_, current_stream(device_)));
  }

 private:
  const at::Device device_;
  const std::unique_ptr<AllocationPool> pool_;  // of the graph's work
  cudaGraphExec_t executable_ = nullptr;
};

class GraphRecorder : public StepRecorder {
 public:
  explicit GraphRecorder(at::Device device) : device_(device) {}

  std::unique_ptr<Recording> record(const std::function<void()>& work) override {
    use_gpu(device_);
    const auto stream = current_stream(device_);
    auto pool = std::make_unique<AllocationPool>(device_, stream);
    // ThreadLocal: other threads may wait for the GPU and allocate meanwhile. This thread may not;
    // CUDA reports an error if it does.
    FARSTEP_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    std::exception_ptr thrown;
    try {
      work();
    } catch (...) {
      thrown = std::current_exception();
    }
    cudaGraph_t ended = nullptr;
    const auto error = cudaStreamEndCapture(stream, &ended);
    const Graph graph(ended);
    pool->close();
    if (thrown || error != cudaSuccess) cudaGetLastError();  // or the next check would find it
    if (thrown) std::rethrow_exception(thrown);
    FARSTEP_CUDA_CHECK(error);
    return std::make_unique<GraphRecording>(device_, std::move(pool), graph);
  }

 private:
  const at::Device device_;
};

}  // namespace

std::unique_ptr<StepRecorder> make_graph_recorder(at::Device device) {
  return std::make_unique<GraphRecorder>(device);
}

}  // namespace farstep
