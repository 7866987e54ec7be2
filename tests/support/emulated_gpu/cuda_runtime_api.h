// The CUDA runtime of a GPU that the CPU emulates: its memory is host memory, and its work is
// done when a call returns, or is recorded to be done later, as often as it is wanted.
//
// Stands in for the toolkit's header, which it has the part of that kernels and their tests use.
// Whatever streams are given is done in the order in which the host gives it; a StreamOrder
// (stream_order.h) is told of it, and finds what a GPU might do in another order.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2 };
enum cudaMemcpyKind {
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3
};
using cudaStream_t = struct CUstream_st*;
using cudaEvent_t = struct CUevent_st*;
constexpr unsigned cudaStreamNonBlocking = 1, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2;

namespace farstep {

using EmulatedCommands = std::vector<std::function<void()>>;
// Where the GPU's work is recorded; null where it is done.
inline EmulatedCommands* emulated_recording = nullptr;

// What a StreamOrder is told, when the host gives the work and when it is done.
void tell_given(cudaStream_t stream);
void tell_begun(cudaStream_t stream);
void tell_ended();
void tell_recorded(cudaEvent_t event, cudaStream_t stream);
void tell_waits(cudaStream_t stream, cudaEvent_t event);
void tell_host_waits(cudaEvent_t event);
void tell_host_waits_for_all();
void tell_allocated(const void* memory, std::size_t bytes);
void tell_freed(const void* memory);
void tell_read(const void* memory, std::size_t bytes);
void tell_written(const void* memory, std::size_t bytes);

inline cudaError_t emulate_work(std::function<void()> work, cudaStream_t stream = nullptr) {
  tell_given(stream);
  const auto run = [work = std::move(work), stream] {
    tell_begun(stream);
    work();
    tell_ended();
  };
  if (emulated_recording != nullptr) {
    emulated_recording->push_back(run);
  } else {
    run();
  }
  return cudaSuccess;
}

// Streams and events are numbers.
template <typename Handle>
Handle new_handle() {
  static std::uintptr_t last = 0;
  return reinterpret_cast<Handle>(++last);
}

// Bytes of memory that the GPU says it has.
inline std::size_t emulated_memory_bytes = std::size_t{80} << 30;

}  // namespace farstep

struct dim3 {
  unsigned x, y, z;
  dim3(unsigned of_x = 1, unsigned of_y = 1, unsigned of_z = 1) : x(of_x), y(of_y), z(of_z) {}
};

inline cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
inline cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
inline const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess ? "no error" : "an error";
}
inline const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaSuccess ? "cudaSuccess" : "cudaError";
}
inline cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  farstep::tell_allocated(*memory, bytes);
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
inline cudaError_t cudaFree(void* memory) {
  farstep::tell_freed(memory);
  std::free(memory);
  return cudaSuccess;
}
inline cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = *total = farstep::emulated_memory_bytes;
  return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* memory, int byte, std::size_t bytes, cudaStream_t stream) {
  return farstep::emulate_work(
      [=] {
        farstep::tell_written(memory, bytes);
        std::memset(memory, byte, bytes);
      },
      stream);
}
inline cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                                   cudaStream_t stream) {
  return farstep::emulate_work(
      [=] {
        farstep::tell_read(from, bytes);
        farstep::tell_written(to, bytes);
        std::memcpy(to, from, bytes);
      },
      stream);
}
inline cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  return cudaMalloc(memory, bytes);
}
inline cudaError_t cudaFreeHost(void* memory) {
  return cudaFree(memory);
}
inline cudaError_t cudaDeviceSynchronize() {
  farstep::tell_host_waits_for_all();
  return cudaSuccess;
}
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = farstep::new_handle<cudaStream_t>();
  return cudaSuccess;
}
inline cudaError_t cudaStreamDestroy(cudaStream_t) {
  return cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t) {
  return cudaSuccess;
}
constexpr unsigned cudaEventWaitExternal = 1;
namespace farstep {
inline int num_external_waits = 0;  // that were recorded
}
inline cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  farstep::tell_waits(stream, event);
  if (flags != cudaEventWaitExternal) return cudaSuccess;
  if (farstep::emulated_recording == nullptr) return cudaErrorInvalidValue;
  ++farstep::num_external_waits;
  return cudaSuccess;
}
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive };
inline cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = farstep::emulated_recording == nullptr ? cudaStreamCaptureStatusNone
                                                   : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = farstep::new_handle<cudaEvent_t>();
  return cudaSuccess;
}
inline cudaError_t cudaEventDestroy(cudaEvent_t) {
  return cudaSuccess;
}
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  farstep::tell_recorded(event, stream);
  return cudaSuccess;
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  farstep::tell_host_waits(event);
  return cudaSuccess;
}
inline cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = 0;
  return cudaSuccess;
}
