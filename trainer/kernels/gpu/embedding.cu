#include "trainer/kernels/gpu/embedding.h"

#include "trainer/kernels/gpu/device_code.h"

namespace farstep {

namespace {

template <int n>
__global__ void __launch_bounds__(kMostThreads)
    embed_rows(const float* table, const int64_t* tokens, int64_t packs, float* x) {
  const int64_t pack = own_pack();
  if (pack >= packs) return;
  store<n>(x, own_row() * packs + pack, load<n>(table, tokens[own_row()] * packs + pack));
}

// A thread a row: how many rows come before it, those of smaller tokens and the earlier ones of its
// own.
__global__ void __launch_bounds__(kMostThreads)
    order_by_token(const int64_t* tokens, int32_t rows, int32_t* order) {
  __shared__ int32_t tile[kMostThreads];
  const auto thread = static_cast<int32_t>(threadIdx.x);
  const auto row = static_cast<int32_t>(blockIdx.x) * kMostThreads + thread;
  const auto token_of = [=](int32_t r) { return r < rows ? static_cast<int32_t>(tokens[r]) : 0; };
  const int32_t own = token_of(row);
  int32_t before = 0;
  for (int32_t first = 0; first < rows; first += kMostThreads) {
    __syncthreads();
    tile[thread] = token_of(first + thread);
    __syncthreads();
    const int32_t count = rows - first < kMostThreads ? rows - first : kMostThreads;
    for (int32_t k = 0; k < count; ++k) {
      before += (tile[k] < own || (tile[k] == own && first + k < row)) ? 1 : 0;
    }
  }
  if (row < rows) order[before] = row;
}

// Along x a block for each place of the order, of which those work where a token begins; along y
// packs of columns.
template <int n>
__global__ void __launch_bounds__(kMostThreads)
    add_rows_of_token(const float* x_gradient, const int64_t* tokens, int64_t rows, int64_t packs,
                      const int32_t* order, float* table_gradient) {
  const int64_t begin = own_row(), pack = own_pack();
  const int64_t token = tokens[order[begin]];
  if (pack >= packs || (begin > 0 && tokens[order[begin - 1]] == token)) return;
  auto sum = load<n>(table_gradient, token * packs + pack);
  // Several at once, as each waits for the order, its token and its values in turn.
  constexpr int kAtOnce = 8;
  bool same = true;
  for (int64_t place = begin; same; place += kAtOnce) {
    bool own[kAtOnce];
    Pack<float, n> values[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int64_t row = order[std::min(place + k, rows - 1)];
      own[k] = place + k < rows && tokens[row] == token;
      values[k] = load<n>(x_gradient, row * packs + pack);
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      if (!own[k]) continue;
      for (int i = 0; i < n; ++i) sum[i] += values[k][i];
    }
    same = own[kAtOnce - 1];
  }
  store<n>(table_gradient, token * packs + pack, sum);
}

}  // namespace

cudaError_t launch_embed(const float* table, const int64_t* tokens, int64_t rows, int64_t width,
                         float* x, cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  const int n = are_packs<4>(width, table, x) ? 4 : 1;
  return launch(n == 4 ? embed_rows<4> : embed_rows<1>, shape_of_rows(rows, width / n), stream,
                table, tokens, width / n, x);
}

cudaError_t launch_embed_backward(const float* x_gradient, const int64_t* tokens, int64_t rows,
                                  int64_t width, int32_t* order, float* table_gradient,
                                  cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  const auto blocks = static_cast<unsigned>((rows + kMostThreads - 1) / kMostThreads);
  const auto error = launch(order_by_token, {.blocks = blocks, .threads = kMostThreads}, stream,
                            tokens, static_cast<int32_t>(rows), order);
  if (error != cudaSuccess) return error;
  const int n = are_packs<4>(width, x_gradient, table_gradient) ? 4 : 1;
  return launch(n == 4 ? add_rows_of_token<4> : add_rows_of_token<1>,
                shape_of_rows(rows, width / n), stream, x_gradient, tokens, rows, width / n, order,
                table_gradient);
}

}  // namespace farstep
