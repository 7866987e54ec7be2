// CUB's radix sort on a GPU that is played by the CPU: the part of it that kernels use.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace cub {

struct DeviceRadixSort {
  // Pairs in order of bits [begin_bit, end_bit) of their keys, equal ones as they stood; without
  // `room` only the bytes that it would want.
  template <typename Key, typename Value>
  static cudaError_t SortPairs(void* room, std::size_t& room_bytes, const Key* keys,
                               Key* sorted_keys, const Value* values, Value* sorted_values,
                               int count, int begin_bit, int end_bit, cudaStream_t) {
    const auto size = static_cast<std::size_t>(count);
    const auto wanted = size * sizeof(std::size_t) + 1;
    if (room == nullptr) {
      room_bytes = wanted;
      return cudaSuccess;
    }
    if (room_bytes < wanted) return cudaErrorInvalidValue;
    return farstep::emulate_work([=] {
      const auto bits_of = [=](std::size_t i) {
        const auto all = static_cast<unsigned long long>(keys[i]);
        return (all & ((1ULL << end_bit) - 1)) >> begin_bit;
      };
      std::vector<std::size_t> order(size);
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::stable_sort(order.begin(), order.end(),
                       [&](std::size_t a, std::size_t b) { return bits_of(a) < bits_of(b); });
      for (std::size_t i = 0; i < size; ++i) {
        sorted_keys[i] = keys[order[i]];
        sorted_values[i] = values[order[i]];
      }
    });
  }
};

}  // namespace cub
