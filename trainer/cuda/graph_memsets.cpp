// cuBLAS and cuDNN clear a counter of 4 bytes before most of their kernels: 128 times in a step of
// the 150M model. In a graph an H100 stands still for 7 us around such a memset, and for 1 us
// around a kernel (docs/results/gpu.md).
#include "trainer/cuda/graph_memsets.h"

#include <vector>

#include "trainer/cuda/cuda_check.h"
#include "trainer/cuda/memset_kernel.h"

namespace farstep {

namespace {

// `list` writes nodes and their number, or the number alone if the nodes are null.
template <typename List>
std::vector<cudaGraphNode_t> nodes_of(const List& list) {
  std::size_t count = 0;
  FARSTEP_CUDA_CHECK(list(nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  FARSTEP_CUDA_CHECK(list(nodes.data(), &count));
  return nodes;
}

void replace(cudaGraph_t graph, cudaGraphNode_t node, const cudaMemsetParams& memset) {
  const auto before = nodes_of([&](cudaGraphNode_t* nodes, std::size_t* count) {
    return cudaGraphNodeGetDependencies(node, nodes, nullptr, count);
  });
  const auto after = nodes_of([&](cudaGraphNode_t* nodes, std::size_t* count) {
    return cudaGraphNodeGetDependentNodes(node, nodes, nullptr, count);
  });
  cudaGraphNode_t added = nullptr;
  FARSTEP_CUDA_CHECK(add_memset_kernel(graph, before.data(), before.size(), memset, &added));
  const std::vector<cudaGraphNode_t> from(after.size(), added);
  FARSTEP_CUDA_CHECK(
      cudaGraphAddDependencies(graph, from.data(), after.data(), nullptr, after.size()));
  FARSTEP_CUDA_CHECK(cudaGraphDestroyNode(node));
}

}  // namespace

void turn_memsets_into_kernels(cudaGraph_t graph) {
  const auto nodes = nodes_of([&](cudaGraphNode_t* found, std::size_t* count) {
    return cudaGraphGetNodes(graph, found, count);
  });
  for (const auto node : nodes) {
    cudaGraphNodeType type{};
    FARSTEP_CUDA_CHECK(cudaGraphNodeGetType(node, &type));
    if (type != cudaGraphNodeTypeMemset) continue;
    cudaMemsetParams memset{};
    FARSTEP_CUDA_CHECK(cudaGraphMemsetNodeGetParams(node, &memset));
    if (fits_memset_kernel(memset)) replace(graph, node, memset);
  }
}

}  // namespace farstep
