#include "trainer/kernels/gpu/rotary.h"

#include "trainer/kernels/gpu/device_code.h"

namespace farstep {

namespace {

// Rotates or copies the two halves of a head, pack by pack. The row's position selects the angles.
template <int n>
struct HeadHalves {
  int64_t packs;  // of half a head

  __device__ void rotate(const RotaryRows& shape, float sign, int64_t pack, const BF16* from,
                         BF16* to) const {
    // 32 bits are enough, and a GPU divides 64-bit numbers in dozens of instructions.
    const uint32_t position = blockIdx.x % static_cast<uint32_t>(shape.sequence_length);
    const int64_t angles = position * packs + pack;
    const auto cosines = load<n>(shape.cosines, angles);
    const auto sines = load<n>(shape.sines, angles);
    auto first = load<n>(from, pack);
    auto second = load<n>(from, packs + pack);
    for (int i = 0; i < n; ++i) {
      const auto pair =
          rotated_pair(to_float(first[i]), to_float(second[i]), cosines[i], sign * sines[i]);
      first[i] = rounded<BF16>(pair.first);
      second[i] = rounded<BF16>(pair.second);
    }
    store<n>(to, pack, first);
    store<n>(to, packs + pack, second);
  }
  __device__ void copy(int64_t pack, const BF16* from, BF16* to) const {
    store<n>(to, pack, load<n>(from, pack));
    store<n>(to, packs + pack, load<n>(from, packs + pack));
  }
};

// In place, because each value is read by the thread that writes it.
template <int n>
__global__ void __launch_bounds__(kMostThreads) rotate_in_place(RotaryRows shape, BF16* heads) {
  const HeadHalves<n> halves{shape.head_size / 2 / n};
  const auto packs = static_cast<uint32_t>(halves.packs);
  const auto item = static_cast<uint32_t>(own_pack());
  const uint32_t head = item / packs;
  if (head >= shape.rotated_heads) return;
  BF16* const own = heads + own_row() * shape.width() + head * shape.head_size;
  halves.rotate(shape, 1.0F, item % packs, own, own);
}

// Each thread reads from one of three arrays and writes to the joined one, so no copy is needed. A
// rotation's transpose is its inverse, so backward rotates back.
template <int n>
__global__ void __launch_bounds__(kMostThreads)
    rotate_back_and_join(RotaryRows shape, HeadGradients rotated, BF16* heads_gradient) {
  const HeadHalves<n> halves{shape.head_size / 2 / n};
  const auto packs = static_cast<uint32_t>(halves.packs);
  const auto item = static_cast<uint32_t>(own_pack());
  const uint32_t pack = item % packs;
  const int64_t head = item / packs;
  const int64_t key_heads = shape.other_heads, query_heads = shape.rotated_heads - key_heads;
  if (head >= query_heads + 2 * key_heads) return;
  BF16* const own = heads_gradient + own_row() * shape.width() + head * shape.head_size;
  const auto head_of = [&](const BF16* heads, int64_t count, int64_t index) {
    return heads + (own_row() * count + index) * shape.head_size;
  };
  if (head < query_heads) {
    halves.rotate(shape, -1.0F, pack, head_of(rotated.queries, query_heads, head), own);
  } else if (head < shape.rotated_heads) {
    halves.rotate(shape, -1.0F, pack, head_of(rotated.keys, key_heads, head - query_heads), own);
  } else {
    halves.copy(pack, head_of(rotated.values, key_heads, head - shape.rotated_heads), own);
  }
}

}  // namespace

cudaError_t launch_rotate(const RotaryRows& shape, int64_t rows, BF16* heads, cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  const int64_t half = shape.head_size / 2;
  const int n = are_packs<8>(half, heads, shape.cosines, shape.sines) ? 8 : 1;
  return launch(n == 8 ? rotate_in_place<8> : rotate_in_place<1>,
                shape_of_rows(rows, shape.rotated_heads * half / n), stream, shape, heads);
}

cudaError_t launch_rotate_back(const RotaryRows& shape, const HeadGradients& rotated, int64_t rows,
                               BF16* heads_gradient, cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  const int64_t half = shape.head_size / 2;
  const bool packs = are_packs<8>(half, rotated.queries, rotated.keys, rotated.values,
                                  heads_gradient, shape.cosines, shape.sines);
  const int64_t items = shape.width() / 2 / (packs ? 8 : 1);
  return launch(packs ? rotate_back_and_join<8> : rotate_back_and_join<1>,
                shape_of_rows(rows, items), stream, shape, rotated, heads_gradient);
}

}  // namespace farstep
