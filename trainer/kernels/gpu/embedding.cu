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

// Places of the order that one block adds up. A frequent token has thousands of rows; in one block
// they would be added one after the other. A longer part makes that worse, and a shorter one leaves
// more to join.
constexpr int64_t kPart = 32;

// The rows in order of their tokens.
struct Places {
  const uint32_t* tokens;
  const int32_t* rows;
  int64_t count;

  // Whether places `place` - 1 and `place` have the same token; false beyond the ends.
  __device__ bool go_on_at(int64_t place) const {
    return place > 0 && place < count && tokens[place - 1] == tokens[place];
  }
};

// Adds up the rows of each token, without atomic additions, whose order and so whose bits would
// change from run to run. Rows are sorted by token instead, and one thread writes each value of the
// table.
//
// Each block along x adds up one part of the order; y divides the columns. A token's first rows in
// the order are added to the table. If a part begins in the middle of a token, its sum for that
// token goes to `parts`, because another block writes the table's row.
template <int n>
__global__ void __launch_bounds__(kMostThreads)
    add_parts_of_order(Places places, const float* x_gradient, int64_t packs, float* table_gradient,
                       float* parts) {
  const int64_t begin = own_row() * kPart, pack = own_pack();
  const int64_t end = std::min(begin + kPart, places.count);
  if (pack >= packs) return;
  float* to = nullptr;  // null before the first place
  int64_t to_pack = 0;
  Pack<float, n> sum{};
  // Several places at once: each needs its row number, its values and its token's sum, one after
  // the other, so their latencies overlap.
  constexpr int kAtOnce = 4;
  for (int64_t place = begin; place < end; place += kAtOnce) {
    bool begins[kAtOnce];
    Pack<float, n> values[kAtOnce], sums[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int64_t own = std::min(place + k, end - 1);
      begins[k] = !places.go_on_at(own);
      values[k] = load<n>(x_gradient, places.rows[own] * packs + pack);
      sums[k] =
          begins[k] ? load<n>(table_gradient, places.tokens[own] * packs + pack) : Pack<float, n>{};
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      if (place + k >= end) continue;
      if (begins[k] || to == nullptr) {
        if (to != nullptr) store<n>(to, to_pack, sum);
        to = begins[k] ? table_gradient : parts;
        to_pack = (begins[k] ? int64_t{places.tokens[place + k]} : own_row()) * packs + pack;
        sum = sums[k];
      }
      for (int i = 0; i < n; ++i) sum[i] += values[k][i];
    }
  }
  store<n>(to, to_pack, sum);
}

// Uses the same blocks. The block in whose part a token begins adds the sums that later parts left
// in `parts` for it.
template <int n>
__global__ void __launch_bounds__(kMostThreads)
    join_parts(Places places, int64_t packs, const float* parts, float* table_gradient) {
  const int64_t begin = own_row() * kPart, next = begin + kPart, pack = own_pack();
  if (pack >= packs || !places.go_on_at(next)) return;
  const uint32_t token = places.tokens[next];
  if (places.tokens[begin] == token && places.go_on_at(begin)) return;
  const int64_t own = token * packs + pack, count = (places.count + kPart - 1) / kPart;
  auto sum = load<n>(table_gradient, own);
  // Several parts at once, so that their loads overlap.
  constexpr int kAtOnce = 8;
  bool goes_on = true;
  for (int64_t part = own_row() + 1; goes_on; part += kAtOnce) {
    bool added[kAtOnce];
    Pack<float, n> values[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int64_t from = std::min(part + k, count - 1);
      added[k] = part + k < count && places.tokens[from * kPart] == token;
      values[k] = load<n>(parts, from * packs + pack);
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      if (!added[k]) continue;
      for (int i = 0; i < n; ++i) sum[i] += values[k][i];
    }
    goes_on = added[kAtOnce - 1];
  }
  store<n>(table_gradient, own, sum);
}

}  // namespace

cudaError_t launch_embed(const float* table, const int64_t* tokens, int64_t rows, int64_t width,
                         float* x, cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  const int n = are_packs<4>(width, table, x) ? 4 : 1;
  return launch(n == 4 ? embed_rows<4> : embed_rows<1>, shape_of_rows(rows, width / n), stream,
                table, tokens, width / n, x);
}

cudaError_t cut_embed_room(ArenaCutter& cutter, int64_t rows, int64_t width, EmbedRoom& room) {
  cutter.cut(room.parts, (rows + kPart - 1) / kPart * width);
  return cut_token_order(cutter, rows, room.order);
}

// Three launches in order: sort, add the parts, join tokens that extend over several parts.
cudaError_t launch_embed_backward(const EmbedBackward& backward, const EmbedRoom& room,
                                  float* table_gradient, cudaStream_t stream) {
  const auto& [x_gradient, tokens, rows, width, vocabulary] = backward;
  if (rows == 0) return cudaSuccess;
  auto error = launch_token_order(tokens, rows, vocabulary, room.order, stream);
  if (error != cudaSuccess) return error;
  const Places places{room.order.tokens, room.order.rows, rows};
  const int n = are_packs<4>(width, x_gradient, table_gradient, room.parts) ? 4 : 1;
  const auto shape = shape_of_rows((rows + kPart - 1) / kPart, width / n);
  error = launch(n == 4 ? add_parts_of_order<4> : add_parts_of_order<1>, shape, stream, places,
                 x_gradient, width / n, table_gradient, room.parts);
  if (error != cudaSuccess) return error;
  return launch(n == 4 ? join_parts<4> : join_parts<1>, shape, stream, places, width / n,
                static_cast<const float*>(room.parts), table_gradient);
}

}  // namespace farstep
