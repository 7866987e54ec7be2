// Two ways through attention. With bf16 instructions a head goes by squares of 32 x 32
// (trainer/kernels/products/head_attention). Otherwise it goes by tiles of queries, in whole
// products.
#include "trainer/model/cpu_ops/cpu_attention.h"

#include <algorithm>
#include <cmath>

#include "trainer/base/stopped.h"
#include "trainer/kernels/numbers/convert.h"
#include "trainer/kernels/softmax.h"
#include "trainer/model/matmul/matrix_product.h"
#include "trainer/model/parallel_rows.h"

namespace farstep {

namespace {

float score_scale(const AttentionShape& shape) {
  return 1.0F / std::sqrt(static_cast<float>(shape.head_size));
}

// Returns the calling thread's part of the working memory.
template <typename T>
AttentionScratch<T> own_part(const AttentionShape& shape, const AttentionScratch<T>& all) {
  const int64_t thread = at::get_thread_num();
  const int64_t tile = thread * tile_rows(shape) * shape.length;
  return {.scores = all.scores + tile,
          .gradient = all.gradient + tile,
          .probabilities = all.probabilities + tile,
          .d_scores = all.d_scores + tile,
          .mixed = all.mixed + thread * tile_rows(shape) * shape.head_size,
          .by = {},
          .heads = {}};
}

ScoreTile tile_at(const AttentionShape& shape, int64_t first) {
  const int64_t rows = std::min(tile_rows(shape), shape.length - first);
  return {.first = first, .rows = rows, .columns = first + rows, .scale = score_scale(shape)};
}

// Scores, softmax and the product with the values, tile by tile, so that a tile's scores stay in
// the cache. A tile has all keys that its queries see. So a row's softmax is complete in it, unlike
// in FlashAttention (Dao et al. 2022).
template <typename T>
void attend_tiles(const AttentionShape& shape, const T* query, const T* key, const T* value,
                  const AttentionScratch<T>& own, T* mixed, float* log_sums) {
  const int64_t width = shape.width(), size = shape.head_size;
  for (int64_t first = 0; first < shape.length; first += tile_rows(shape)) {
    const auto tile = tile_at(shape, first);
    multiply(tile.rows, tile.columns, size, {query + first * width, width}, {key, width, true},
             {own.scores, tile.columns});
    causal_softmax(tile, own.scores, own.probabilities, log_sums + first);
    multiply(tile.rows, size, tile.columns, {own.probabilities, tile.columns}, {value, width},
             {own.mixed, size});
    round_rows(own.mixed, size, tile.rows, size, mixed + first * shape.mixed_width(),
               shape.mixed_width());
  }
}

HeadShape head_shape(const AttentionShape& shape) {
  return {.length = shape.length,
          .size = shape.head_size,
          .stride = shape.width(),
          .mixed_stride = shape.mixed_width(),
          .scale = score_scale(shape)};
}

const HeadScratch& own_head(const AttentionScratch<BF16>& scratch) {
  return scratch.heads[static_cast<std::size_t>(at::get_thread_num())];
}

template <typename T>
void differentiate_head(const AttentionShape& shape, const HeadBackward<T>& head,
                        const AttentionScratch<T>& scratch) {
  // Only bf16 has instructions for squares; fp32 always goes by tiles.
  if constexpr (std::is_same_v<T, BF16>) {
    if (scratch.by) {
      attend_head_backward(*scratch.by, head_shape(shape), head, own_head(scratch));
      return;
    }
  }
  const auto own = own_part(shape, scratch);
  const int64_t width = shape.width(), mixed_width = shape.mixed_width(), size = shape.head_size;
  const int64_t last = (shape.length - 1) / tile_rows(shape) * tile_rows(shape);
  // The last tile comes first, because only it sees all keys: it sets their gradients, and the
  // others add to them.
  for (int64_t first = last; first >= 0; first -= tile_rows(shape)) {
    const auto tile = tile_at(shape, first);
    // Adds for later query heads of the same key head, and for later tiles.
    const bool adds = head.adds || first != last;
    const T* const query = head.query + first * width;
    const T* const d_mixed = head.d_mixed + first * mixed_width;
    multiply(tile.rows, tile.columns, size, {query, width}, {head.key, width, true},
             {own.scores, tile.columns});
    multiply(tile.rows, tile.columns, size, {d_mixed, mixed_width}, {head.value, width, true},
             {own.gradient, tile.columns});
    causal_softmax_backward(tile, own.scores, head.log_sums + first, own.gradient,
                            own.probabilities, own.d_scores);
    multiply(tile.rows, size, tile.columns, {own.d_scores, tile.columns}, {head.key, width},
             {head.d_query + first * width, width});
    multiply(tile.columns, size, tile.rows, {own.d_scores, tile.columns, true}, {query, width},
             {head.d_key, width, adds});
    multiply(tile.columns, size, tile.rows, {own.probabilities, tile.columns, true},
             {d_mixed, mixed_width}, {head.d_value, width, adds});
  }
}

}  // namespace

// One part for each thread, cut once for a pass.
template <typename T>
AttentionScratch<T> cut_attention_scratch(ArenaCutter& cutter, const AttentionShape& shape,
                                          int64_t threads, std::optional<InstructionSet> by) {
  AttentionScratch<T> scratch;
  if (by && std::is_same_v<T, BF16>) {
    scratch.by = by;
    for (int64_t thread = 0; thread < threads; ++thread) {
      scratch.heads.push_back(cut_head_scratch(cutter, head_shape(shape)));
    }
    return scratch;
  }
  const int64_t tiles = threads * tile_rows(shape);
  cutter.cut(scratch.scores, tiles * shape.length);
  cutter.cut(scratch.gradient, tiles * shape.length);
  cutter.cut(scratch.probabilities, tiles * shape.length);
  cutter.cut(scratch.d_scores, tiles * shape.length);
  cutter.cut(scratch.mixed, tiles * shape.head_size);
  return scratch;
}

template <typename T>
void attend(const AttentionShape& shape, const T* heads, const AttentionScratch<T>& scratch,
            T* mixed, float* log_sums, const std::stop_token& stop) {
  const int64_t group = shape.heads / shape.kv_heads, size = shape.head_size;
  for_rows(shape.sequences * shape.heads, [&](int64_t begin, int64_t end) {
    // A task is one query head of one sequence. Heads are independent in forward.
    for (int64_t task = begin; task < end; ++task) {
      throw_if_stopped(stop);
      const int64_t row = task / shape.heads * shape.length, head = task % shape.heads;
      const T* const first = heads + row * shape.width();
      const T* const query = first + head * size;
      const T* const key = first + (shape.heads + head / group) * size;
      const T* const value = key + shape.kv_heads * size;
      T* const to = mixed + row * shape.mixed_width() + head * size;
      float* const sums = log_sums + task * shape.length;
      if constexpr (std::is_same_v<T, BF16>) {
        if (scratch.by) {
          attend_head(*scratch.by, head_shape(shape), query, key, value, own_head(scratch), to,
                      sums);
          continue;
        }
      }
      attend_tiles(shape, query, key, value, own_part(shape, scratch), to, sums);
    }
  });
}

template <typename T>
void attend_backward(const AttentionShape& shape, const AttentionKept<T>& kept,
                     const T* mixed_gradient, const AttentionScratch<T>& scratch,
                     float* heads_gradient, const std::stop_token& stop) {
  const int64_t group = shape.heads / shape.kv_heads, size = shape.head_size;
  for_rows(shape.sequences * shape.kv_heads, [&](int64_t begin, int64_t end) {
    // A task is one key head: its query heads add to the same gradients, so one thread does them
    // all.
    for (int64_t task = begin; task < end; ++task) {
      throw_if_stopped(stop);
      const int64_t sequence = task / shape.kv_heads, kv_head = task % shape.kv_heads;
      const int64_t row = sequence * shape.length;
      const int64_t key = row * shape.width() + (shape.heads + kv_head) * size;
      const int64_t value = key + shape.kv_heads * size;
      for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
        const int64_t query = row * shape.width() + head * size;
        const int64_t mixed = row * shape.mixed_width() + head * size;
        differentiate_head<T>(
            shape,
            {.query = kept.heads + query,
             .key = kept.heads + key,
             .value = kept.heads + value,
             .mixed = kept.mixed + mixed,
             .d_mixed = mixed_gradient + mixed,
             .log_sums = kept.log_sums + (sequence * shape.heads + head) * shape.length,
             .d_query = heads_gradient + query,
             .d_key = heads_gradient + key,
             .d_value = heads_gradient + value,
             .adds = head != kv_head * group},
            scratch);
      }
    }
  });
}

template AttentionScratch<float> cut_attention_scratch(ArenaCutter&, const AttentionShape&, int64_t,
                                                       std::optional<InstructionSet>);
template AttentionScratch<BF16> cut_attention_scratch(ArenaCutter&, const AttentionShape&, int64_t,
                                                      std::optional<InstructionSet>);
template void attend(const AttentionShape&, const float*, const AttentionScratch<float>&, float*,
                     float*, const std::stop_token&);
template void attend(const AttentionShape&, const BF16*, const AttentionScratch<BF16>&, BF16*,
                     float*, const std::stop_token&);
template void attend_backward(const AttentionShape&, const AttentionKept<float>&, const float*,
                              const AttentionScratch<float>&, float*, const std::stop_token&);
template void attend_backward(const AttentionShape&, const AttentionKept<BF16>&, const BF16*,
                              const AttentionScratch<BF16>&, float*, const std::stop_token&);

}  // namespace farstep
