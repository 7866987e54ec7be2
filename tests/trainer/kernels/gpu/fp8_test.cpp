#include "trainer/kernels/gpu/fp8.h"

#include <array>

#include "tests/trainer/kernels/gpu/on_gpu.h"

namespace farstep {

namespace {

std::vector<uint8_t> codes_of(Fp8Format format, const std::vector<BF16>& x, uint32_t largest) {
  std::vector<uint8_t> codes;
  for (const BF16 value : x) {
    const float exact = to_float(value);
    codes.push_back(
        format == Fp8Format::kE4M3
            ? fp8_code<Fp8Format::kE4M3>(exact * fp8_scale<Fp8Format::kE4M3>(largest).factor)
            : fp8_code<Fp8Format::kE5M2>(exact * fp8_scale<Fp8Format::kE5M2>(largest).factor));
  }
  return codes;
}

std::vector<uint8_t> transpose_of(const std::vector<uint8_t>& codes, int64_t rows,
                                  int64_t columns) {
  std::vector<uint8_t> transposed;
  for (int64_t column = 0; column < columns; ++column) {
    for (int64_t row = 0; row < rows; ++row) {
      transposed.push_back(codes[static_cast<std::size_t>(row * columns + column)]);
    }
  }
  return transposed;
}

// Both ways, and one way alone.
void check(Fp8Format format, const std::vector<BF16>& x, int64_t rows, int64_t columns) {
  const auto bits = largest_magnitude_bits(x.data(), rows * columns);
  const auto scale = format == Fp8Format::kE4M3 ? fp8_scale<Fp8Format::kE4M3>(bits)
                                                : fp8_scale<Fp8Format::kE5M2>(bits);
  const auto wanted = codes_of(format, x, bits);
  const auto wanted_transposed = transpose_of(wanted, rows, columns);
  const auto gpu_x = on_gpu(x);
  DeviceArray<uint32_t> largest(std::vector<uint32_t>{0});
  require(launch_largest_magnitude(gpu_x.data(), rows * columns, largest.data(), nullptr));
  CHECK(largest.download()[0] == bits);
  for (const bool straight : {true, false}) {
    for (const bool transposed : {true, false}) {
      const auto none = on_gpu(std::vector<uint8_t>(x.size(), 0x55));
      DeviceArray<uint8_t> codes(none.download()), turned(none.download());
      DeviceArray<float> inverse(1);
      require(launch_to_fp8(
          format, gpu_x.data(), rows, columns, largest.data(),
          {straight ? codes.data() : nullptr, transposed ? turned.data() : nullptr, inverse.data()},
          nullptr));
      CHECK(inverse.download()[0] == scale.inverse);
      CHECK(equal_bits(codes.download(), straight ? wanted : none.download()));
      CHECK(equal_bits(turned.download(), transposed ? wanted_transposed : none.download()));
    }
  }
}

}  // namespace

TEST_CASE("a GPU's FP8 and its transpose are a CPU's to the bit", "[gpu]") {
  if (lacks_gpu()) return;
  for (const auto format : {Fp8Format::kE4M3, Fp8Format::kE5M2}) {
    for (const auto& [rows, columns] :
         {std::array<int64_t, 2>{16, 16}, {16, 80}, {208, 48}, {64, 64}, {144, 1040}}) {
      const double deviation = GENERATE(1e-12, 1.0, 1e4);
      check(format, as<BF16>(random_values(rows * columns, deviation)), rows, columns);
    }
  }
}

TEST_CASE("every bf16 becomes the same FP8 on a GPU and on a CPU", "[gpu]") {
  if (lacks_gpu()) return;
  std::vector<BF16> finite, all;
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    all.push_back({static_cast<uint16_t>(bits)});
    const bool is_finite = (bits & 0x7fff) < 0x7f80;
    finite.push_back({static_cast<uint16_t>(is_finite ? bits : 0)});
  }
  for (const auto format : {Fp8Format::kE4M3, Fp8Format::kE5M2}) {
    check(format, finite, 256, 256);
    check(format, all, 256, 256);
    // Magnitudes from the middle of the format's range down to below it.
    auto middle = finite;
    for (auto& value : middle) {
      if ((value.bits & 0x7fff) > 0x4000) value.bits = 0;
    }
    check(format, middle, 256, 256);
    check(format, std::vector<BF16>(32 * 16, BF16{0}), 32, 16);
  }
}

TEST_CASE("a matrix that FP8 products do not take is refused", "[gpu]") {
  if (lacks_gpu()) return;
  DeviceArray<BF16> x(1024);
  DeviceArray<uint8_t> codes(1024);
  DeviceArray<uint32_t> largest(std::vector<uint32_t>{5});
  DeviceArray<float> inverse(1);
  const Fp8Matrix to{codes.data(), nullptr, inverse.data()};
  const auto launched = [&](const BF16* from, int64_t rows, int64_t columns) {
    return launch_to_fp8(Fp8Format::kE4M3, from, rows, columns, largest.data(), to, nullptr);
  };
  CHECK(launched(x.data(), 15, 16) == cudaErrorInvalidValue);
  CHECK(launched(x.data(), 16, 24) == cudaErrorInvalidValue);
  CHECK(launched(x.data() + 1, 16, 16) == cudaErrorInvalidValue);
  CHECK(launched(x.data(), 0, 16) == cudaSuccess);
  CHECK(launch_largest_magnitude(x.data(), 12, largest.data(), nullptr) == cudaErrorInvalidValue);
  CHECK(launch_largest_magnitude(x.data() + 1, 16, largest.data(), nullptr) ==
        cudaErrorInvalidValue);
  CHECK(launch_largest_magnitude(x.data(), 0, largest.data(), nullptr) == cudaSuccess);
  CHECK(largest.download()[0] == 5);
}

}  // namespace farstep
