// Runs work whose results are needed only at the end of a pass on a second stream of the GPU. That
// is the gradients of weights, beside those of activations.
//
// Forks and joins are events, so a CUDA graph recorded from the first stream includes both streams.
// Work on the fork runs in order. Its inputs must not change meanwhile: before writing or freeing
// such an array, call let_write(). Not thread-safe; only in builds with CUDA.
#pragma once

#include <deque>
#include <functional>
#include <initializer_list>
#include <map>

#include "trainer/cuda/gpu_stream.h"
#include "trainer/model/gpu_ops/gpu_library.h"

namespace farstep {

class ForkedStream {
 public:
  explicit ForkedStream(at::Device device) : side_(device) {}
  ~ForkedStream();

  // Must be called before the first work of a pass. Waits for work that an exception left behind.
  void begin();
  // Calls `work` with the fork as the calling thread's current stream. This work waits for the
  // present work of `main`, runs beside later work of `main`, and reads `arrays`.
  void fork(cudaStream_t main, std::initializer_list<const void*> arrays,
            const std::function<void(cudaStream_t)>& work);
  // Makes later work of `main` wait for all work of the fork that reads `array`.
  void let_write(cudaStream_t main, const void* array);
  // Makes later work of `main` wait for all work of the fork.
  void join(cudaStream_t main);

 private:
  void forget();

  const SideStream side_;
  GpuEvent forked_{cudaEventDisableTiming};
  std::deque<GpuEvent> done_;   // one after each piece of work since the last join, and spare ones
  std::size_t num_works_ = 0;   // since the last join
  std::size_t num_waited_ = 0;  // the first ones, for which `main` waits already
  std::map<const void*, std::size_t> num_reading_;  // array -> its last reader's number
};

}  // namespace farstep
