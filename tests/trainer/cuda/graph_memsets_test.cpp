#include "trainer/cuda/graph_memsets.h"

#include <cstdint>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/gpu.h"
#include "trainer/cuda/device_array.h"
#include "trainer/cuda/gpu_stream.h"

namespace farstep {

namespace {

// How many nodes of this type a graph has.
int count_of(cudaGraph_t graph, cudaGraphNodeType wanted) {
  std::size_t count = 0;
  FARSTEP_CUDA_CHECK(cudaGraphGetNodes(graph, nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  FARSTEP_CUDA_CHECK(cudaGraphGetNodes(graph, nodes.data(), &count));
  int found = 0;
  for (const auto node : nodes) {
    cudaGraphNodeType type{};
    FARSTEP_CUDA_CHECK(cudaGraphNodeGetType(node, &type));
    found += type == wanted ? 1 : 0;
  }
  return found;
}

}  // namespace

TEST_CASE("a graph's small memsets become kernels that write the same bytes in the same order",
          "[gpu]") {
  if (lacks_gpu()) return;
  const std::vector<uint8_t> untouched(100, 7);
  DeviceArray<uint8_t> bytes{std::span<const uint8_t>(untouched)}, copied(untouched.size());
  const GpuStream stream;
  FARSTEP_CUDA_CHECK(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
  const auto set = [&](std::size_t first, int value, std::size_t count) {
    FARSTEP_CUDA_CHECK(cudaMemsetAsync(bytes.data() + first, value, count, stream.get()));
  };
  set(0, 1, 50);  // stays a memset
  set(4, 2, 4);   // after it
  set(9, 3, 1);
  set(13, 4, 31);
  FARSTEP_CUDA_CHECK(cudaMemcpyAsync(copied.data(), bytes.data(), bytes.size(),
                                     cudaMemcpyDeviceToDevice, stream.get()));
  set(0, 5, 32);  // after the copy
  cudaGraph_t graph = nullptr;
  FARSTEP_CUDA_CHECK(cudaStreamEndCapture(stream.get(), &graph));
  REQUIRE(count_of(graph, cudaGraphNodeTypeMemset) == 5);

  turn_memsets_into_kernels(graph);
  CHECK(count_of(graph, cudaGraphNodeTypeMemset) == 1);
  CHECK(count_of(graph, cudaGraphNodeTypeKernel) == 4);

  cudaGraphExec_t executable = nullptr;
  FARSTEP_CUDA_CHECK(cudaGraphInstantiateWithFlags(&executable, graph, 0));
  FARSTEP_CUDA_CHECK(cudaGraphLaunch(executable, stream.get()));
  FARSTEP_CUDA_CHECK(cudaStreamSynchronize(stream.get()));
  auto wanted = untouched;
  const auto fill = [&](std::size_t first, uint8_t value, std::size_t count) {
    std::fill_n(wanted.begin() + static_cast<std::ptrdiff_t>(first), count, value);
  };
  fill(0, 1, 50);
  fill(4, 2, 4);
  fill(9, 3, 1);
  fill(13, 4, 31);
  CHECK(copied.download() == wanted);
  fill(0, 5, 32);
  CHECK(bytes.download() == wanted);
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
}

}  // namespace farstep
