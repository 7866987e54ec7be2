// How many logits a GPU that the CPU emulates makes at once.
#include "tests/support/catch.h"
#include "trainer/model/gpu_ops/gpu_ops.h"

namespace farstep {

namespace {

constexpr std::size_t kGib = std::size_t{1} << 30;

int64_t rows_on(std::size_t memory_bytes, int64_t rows, int64_t vocabulary) {
  emulated_memory_bytes = memory_bytes;
  const GpuOps ops(at::kCPU);
  emulated_memory_bytes = 80 * kGib;
  return ops.logit_rows(rows, vocabulary);
}

}  // namespace

TEST_CASE("logits are made in whole tiles of up to half a gibibyte") {
  CHECK(rows_on(80 * kGib, 16'384, 32'000) == 4096);
  CHECK(rows_on(80 * kGib, 16'384, 128'256) == 1024);
  CHECK(rows_on(32 * kGib, 16'384, 32'000) == 4096);
  for (const int64_t vocabulary : {1000, 32'000, 50'257, 128'256, 500'000}) {
    const auto rows = rows_on(80 * kGib, int64_t{1} << 20, vocabulary);
    CHECK(rows % 256 == 0);
    CHECK(rows * vocabulary * 4 <= int64_t{1} << 29);
    CHECK((rows + 256) * vocabulary * 4 > int64_t{1} << 29);
  }
}

TEST_CASE("a small GPU makes fewer logits at once") {
  CHECK(rows_on(24 * kGib, 16'384, 32'000) == 3072);
  CHECK(rows_on(8 * kGib, 16'384, 32'000) == 1024);
  CHECK(rows_on(8 * kGib, 16'384, 1'000'000) == 256);  // as good as no room: a tile all the same
}

TEST_CASE("few rows have their logits at once") {
  CHECK(rows_on(80 * kGib, 1, 32'000) == 1);
  CHECK(rows_on(80 * kGib, 255, 128'256) == 255);
  CHECK(rows_on(80 * kGib, 300, 1'000'000) == 256);
  CHECK(rows_on(80 * kGib, 300, 29) == 300);
}

}  // namespace farstep
