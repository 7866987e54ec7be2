#include "trainer/inner/gpu/snapshot_stream.h"

#include "trainer/cuda/cuda_check.h"

namespace farstep {

SnapshotStream::SnapshotStream() {
  copied_.record(copies_.get());  // so that waiting before the first copy returns at once
}

NamedBuffers SnapshotStream::start(std::span<const Source> sources, cudaStream_t stream) {
  std::size_t values = 0;
  for (const auto& source : sources) values += static_cast<std::size_t>(source.values.numel());
  if (!memory_ || memory_->size() < values) {
    memory_.reset();  // before the allocation: there may be no room for both
    memory_.emplace(values);
  }
  // The copy begins when the updates that were launched before are done.
  worked_.record(stream);
  worked_.hold(copies_.get());
  NamedBuffers buffers;
  float* next = memory_->data();
  for (const auto& source : sources) {
    const auto size = static_cast<std::size_t>(source.values.numel());
    FARSTEP_CUDA_CHECK(cudaMemcpyAsync(next, source.values.const_data_ptr<float>(),
                                       size * sizeof(float), cudaMemcpyDeviceToHost,
                                       copies_.get()));
    buffers.push_back(f32_buffer(source.name, {next, size}));
    next += size;
  }
  copied_.record(copies_.get());
  return buffers;
}

}  // namespace farstep
