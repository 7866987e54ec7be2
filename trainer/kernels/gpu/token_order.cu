// The gradient of an embedding adds rows to tokens. Sorted by token, the rows of one token are
// neighbours, and one thread adds them in a fixed order: no atomic addition, and the same bits each
// time.
#include "trainer/kernels/gpu/token_order.h"

#include <bit>
#include <cub/device/device_radix_sort.cuh>

#include "trainer/kernels/gpu/device_code.h"

namespace farstep {

namespace {

__global__ void __launch_bounds__(kMostThreads)
    number_rows(const int64_t* tokens, int64_t rows, uint32_t* unsorted_tokens,
                int32_t* unsorted_rows) {
  const int64_t row = int64_t{blockIdx.x} * kMostThreads + threadIdx.x;
  if (row >= rows) return;
  unsorted_tokens[row] = static_cast<uint32_t>(tokens[row]);
  unsorted_rows[row] = static_cast<int32_t>(row);
}

// Sorts; without `room` it only sets `bytes` to the room that sorting needs. Sorting is stable, so
// the rows of a token are added in their own order.
cudaError_t sort(void* room, std::size_t& bytes, const TokenOrder& order, int64_t rows, int bits,
                 cudaStream_t stream) {
  return cub::DeviceRadixSort::SortPairs(room, bytes, order.unsorted_tokens, order.tokens,
                                         order.unsorted_rows, order.rows,
                                         static_cast<int32_t>(rows), 0, bits, stream);
}

}  // namespace

cudaError_t cut_token_order(ArenaCutter& cutter, int64_t rows, TokenOrder& order) {
  cutter.cut(order.unsorted_tokens, rows);
  cutter.cut(order.tokens, rows);
  cutter.cut(order.unsorted_rows, rows);
  cutter.cut(order.rows, rows);
  // The vocabulary is not known here, and 32 bits need the most room.
  constexpr int kAllBits = 32;
  const auto error = sort(nullptr, order.sort_bytes, order, rows, kAllBits, nullptr);
  cutter.cut(order.sort, static_cast<int64_t>(order.sort_bytes));
  return error;
}

cudaError_t launch_token_order(const int64_t* tokens, int64_t rows, int64_t vocabulary,
                               const TokenOrder& order, cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  const auto blocks = static_cast<unsigned>((rows + kMostThreads - 1) / kMostThreads);
  const auto error = launch(number_rows, {.blocks = blocks, .threads = kMostThreads}, stream,
                            tokens, rows, order.unsorted_tokens, order.unsorted_rows);
  if (error != cudaSuccess) return error;
  const auto largest = static_cast<uint64_t>(vocabulary - 1);
  // Fewer bits make fewer passes: a vocabulary of 32,000 has 15 bits.
  const int bits = std::max(1, static_cast<int>(std::bit_width(largest)));
  auto bytes = order.sort_bytes;
  return sort(order.sort, bytes, order, rows, bits, stream);
}

}  // namespace farstep
