#include "trainer/kernels/gpu/rotary.h"

#include "tests/trainer/kernels/gpu/on_gpu.h"

namespace farstep {

TEST_CASE("a GPU rotates heads and takes their gradients back as a CPU does", "[gpu]") {
  if (lacks_gpu()) return;
  for (const int64_t half : {1, 3, 8, 12, 64}) {
    for (const int64_t group : {1, 3}) {
      const int64_t length = 5, rows = 2 * length, key_heads = 2;
      const auto cosines = random_values(length * half), sines = random_values(length * half);
      const auto gpu_cosines = on_gpu(cosines), gpu_sines = on_gpu(sines);
      RotaryRows shape{.sequence_length = length,
                       .rotated_heads = (group + 1) * key_heads,
                       .other_heads = key_heads,
                       .head_size = 2 * half,
                       .cosines = cosines.data(),
                       .sines = sines.data()};
      auto gpu_shape = shape;
      gpu_shape.cosines = gpu_cosines.data();
      gpu_shape.sines = gpu_sines.data();

      const auto heads = as<BF16>(random_values(rows * shape.width()));
      std::vector<float> exact_heads;
      for (const BF16 value : heads) exact_heads.push_back(to_float(value));
      std::vector<BF16> rotated(heads.size()), back(heads.size());
      rotate(shape, Rotation::kForward, exact_heads.data(), 0, rows, rotated.data());
      rotate(shape, Rotation::kBackward, exact_heads.data(), 0, rows, back.data());

      auto gpu_heads = on_gpu(heads);
      require(launch_rotate(gpu_shape, rows, gpu_heads.data(), nullptr));
      CHECK(far_values(gpu_heads.download(), rotated) == 0);

      // The same heads, each kind in an array of its own.
      const int64_t widths[] = {group * key_heads * 2 * half, key_heads * 2 * half,
                                key_heads * 2 * half};
      std::vector<BF16> kinds[3];
      auto from = heads.begin();
      for (int64_t row = 0; row < rows; ++row) {
        for (int kind = 0; kind < 3; ++kind) {
          kinds[kind].insert(kinds[kind].end(), from, from + widths[kind]);
          from += widths[kind];
        }
      }
      const auto queries = on_gpu(kinds[0]), keys = on_gpu(kinds[1]), values = on_gpu(kinds[2]);
      DeviceArray<BF16> joined(heads.size());
      require(launch_rotate_back(gpu_shape, {queries.data(), keys.data(), values.data()}, rows,
                                 joined.data(), nullptr));
      CHECK(far_values(joined.download(), back) == 0);
    }
  }
}

}  // namespace farstep
