// Order between a host and the streams of a GPU: a stream, and a point that a stream comes to.
//
// Both belong to the GPU that is the calling thread's when they are made. Not thread-safe.
#pragma once

#include "trainer/cuda/cuda_check.h"

namespace farstep {

// A stream that does not wait for the default one.
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
  // Who waits sleeps: a step of a GPU is long.
  GpuEvent() { FARSTEP_CUDA_CHECK(cudaEventCreateWithFlags(&event_, cudaEventBlockingSync)); }
  ~GpuEvent() { cudaEventDestroy(event_); }
  GpuEvent(const GpuEvent&) = delete;
  GpuEvent& operator=(const GpuEvent&) = delete;

  // Comes after what the stream was given so far.
  void record(cudaStream_t stream) { FARSTEP_CUDA_CHECK(cudaEventRecord(event_, stream)); }
  // What the stream is given next comes after this.
  void hold(cudaStream_t stream) const {
    FARSTEP_CUDA_CHECK(cudaStreamWaitEvent(stream, event_, 0));
  }
  // Returns when the GPU has come to it.
  void wait() const { FARSTEP_CUDA_CHECK(cudaEventSynchronize(event_)); }
  // From an earlier one to this; the GPU has come to both.
  double seconds_since(const GpuEvent& earlier) const {
    float milliseconds = 0;
    FARSTEP_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, earlier.event_, event_));
    return milliseconds * 1e-3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace farstep
