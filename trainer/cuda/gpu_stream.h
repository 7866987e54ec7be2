// A stream of a GPU, and an event that orders streams and the host.
//
// Both belong to the GPU that is current when they are constructed. Not thread-safe.
#pragma once

#include "trainer/cuda/cuda_check.h"

namespace farstep {

// A stream that does not synchronise with the default stream.
class GpuStream {
 public:
  GpuStream() { FARSTEP_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~GpuStream() { cudaStreamDestroy(stream_); }
  GpuStream(const GpuStream&) = delete;
  GpuStream& operator=(const GpuStream&) = delete;

  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class GpuEvent {
 public:
  // By default a waiting thread sleeps instead of spinning, because a step of a GPU is long. With
  // cudaEventDisableTiming the event only orders streams, and recording it is faster.
  explicit GpuEvent(unsigned flags = cudaEventBlockingSync) {
    FARSTEP_CUDA_CHECK(cudaEventCreateWithFlags(&event_, flags));
  }
  ~GpuEvent() { cudaEventDestroy(event_); }
  GpuEvent(const GpuEvent&) = delete;
  GpuEvent& operator=(const GpuEvent&) = delete;

  // Marks the point after all work that the stream has now.
  void record(cudaStream_t stream) { FARSTEP_CUDA_CHECK(cudaEventRecord(event_, stream)); }
  // Makes later work of the stream wait for the recorded point.
  void hold(cudaStream_t stream) const {
    FARSTEP_CUDA_CHECK(cudaStreamWaitEvent(stream, event_, 0));
  }
  // Does the same as hold() and also works while the stream's work is recorded as a graph. At each
  // launch of the graph, the work after this call waits for the newest record() before the launch.
  void hold_recordable(cudaStream_t stream) const {
    auto status = cudaStreamCaptureStatusNone;
    FARSTEP_CUDA_CHECK(cudaStreamIsCapturing(stream, &status));
    const bool is_recorded = status == cudaStreamCaptureStatusActive;
    FARSTEP_CUDA_CHECK(
        cudaStreamWaitEvent(stream, event_, is_recorded ? cudaEventWaitExternal : 0U));
  }
  // Blocks the host until the GPU has reached the recorded point.
  void wait() const { FARSTEP_CUDA_CHECK(cudaEventSynchronize(event_)); }
  // Returns the time from an earlier event to this one; the GPU must have reached both.
  double seconds_since(const GpuEvent& earlier) const {
    float milliseconds = 0;
    FARSTEP_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, earlier.event_, event_));
    return milliseconds * 1e-3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace farstep
