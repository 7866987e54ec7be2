#include "trainer/kernels/gpu/embedding.h"

#include "tests/trainer/kernels/gpu/on_gpu.h"
#include "trainer/kernels/embedding.h"

namespace farstep {

namespace {

// Small whole numbers, whose sums are exact in any order.
std::vector<float> random_integers(int64_t size) {
  auto values = random_values(size, 8);
  for (float& value : values) value = std::round(value);
  return values;
}

// The table's gradient after backward on a GPU.
std::vector<float> backward_on_gpu(const std::vector<int64_t>& tokens, const std::vector<float>& dx,
                                   const std::vector<float>& table, int64_t width) {
  const auto gpu_tokens = on_gpu(tokens);
  const auto gpu_dx = on_gpu(dx);
  auto gradient = on_gpu(table);
  EmbedRoom room;
  ArenaCutter counter(nullptr);
  require(cut_embed_room(counter, std::ssize(tokens), width, room));
  DeviceArray<std::byte> memory(static_cast<std::size_t>(counter.bytes()));
  ArenaCutter cutter(memory.data());
  require(cut_embed_room(cutter, std::ssize(tokens), width, room));
  require(launch_embed_backward({.x_gradient = gpu_dx.data(),
                                 .tokens = gpu_tokens.data(),
                                 .rows = std::ssize(tokens),
                                 .width = width,
                                 .vocabulary = std::ssize(table) / width},
                                room, gradient.data(), nullptr));
  return gradient.download();
}

// What a CPU makes of them.
std::vector<float> backward_on_cpu(const std::vector<int64_t>& tokens, const std::vector<float>& dx,
                                   std::vector<float> table, int64_t width) {
  embed_backward(dx.data(), tokens.data(), std::ssize(tokens), width, 0, width, table.data());
  return table;
}

}  // namespace

TEST_CASE("a GPU embeds tokens and adds up their gradients as a CPU does", "[gpu]") {
  if (lacks_gpu()) return;
  for (const int64_t width : {1, 8, 255, 1028}) {
    for (const int64_t rows : {0, 1, 31, 32, 33, 300}) {
      for (const int64_t vocabulary : {1, 2, 7, 500}) {
        const auto tokens = random_tokens(rows, vocabulary);
        const auto table = random_integers(vocabulary * width);
        const auto dx = random_integers(rows * width);
        std::vector<float> x(dx.size());
        embed(table.data(), tokens.data(), rows, width, x.data());

        const auto gpu_tokens = on_gpu(tokens);
        const auto gpu_table = on_gpu(table);
        DeviceArray<float> gpu_x(x.size());
        require(
            launch_embed(gpu_table.data(), gpu_tokens.data(), rows, width, gpu_x.data(), nullptr));
        CHECK(gpu_x.download() == x);
        CHECK(backward_on_gpu(tokens, dx, table, width) ==
              backward_on_cpu(tokens, dx, table, width));
      }
    }
  }
}

TEST_CASE("a token of any number of rows is added up once whatever its neighbours", "[gpu]") {
  if (lacks_gpu()) return;
  const int64_t width = 8, vocabulary = 5;
  for (const int64_t before : {0, 1, 31, 32, 40}) {
    for (const int64_t common : {1, 2, 31, 32, 33, 63, 64, 65, 96, 700}) {
      for (const int64_t after : {0, 1, 33}) {
        std::vector<int64_t> tokens(static_cast<std::size_t>(before), 0);
        tokens.insert(tokens.end(), static_cast<std::size_t>(common), 3);
        tokens.insert(tokens.end(), static_cast<std::size_t>(after), 4);
        std::ranges::shuffle(tokens, test_random());
        const auto table = random_integers(vocabulary * width);
        const auto dx = random_integers(std::ssize(tokens) * width);
        CHECK(backward_on_gpu(tokens, dx, table, width) ==
              backward_on_cpu(tokens, dx, table, width));
      }
    }
  }
}

TEST_CASE("equal calls of a GPU's embedding give equal bits near a CPU's", "[gpu]") {
  if (lacks_gpu()) return;
  const int64_t width = 36, rows = 1000;
  for (const int64_t vocabulary : {3, 400, 128256}) {
    // Squares of evenly spread numbers, as some tokens are much more common than others.
    auto tokens = random_tokens(rows, 1000);
    for (auto& token : tokens) token = token * token * (vocabulary - 1) / 1'000'000;
    const auto table = random_values(vocabulary * width), dx = random_values(rows * width);
    const auto once = backward_on_gpu(tokens, dx, table, width);
    CHECK(equal_bits(once, backward_on_gpu(tokens, dx, table, width)));
    CHECK(relative_error(once, exact(backward_on_cpu(tokens, dx, table, width))) < 1e-6);
  }
}

TEST_CASE("rows are in order of their tokens and then of themselves", "[gpu]") {
  if (lacks_gpu()) return;
  for (const int64_t vocabulary : {1, 2, 3, 255, 256, 257, 32000, 128256}) {
    const int64_t rows = 777;
    const auto tokens = random_tokens(rows, vocabulary);
    TokenOrder order;
    ArenaCutter counter(nullptr);
    require(cut_token_order(counter, rows, order));
    DeviceArray<std::byte> memory(static_cast<std::size_t>(counter.bytes()));
    ArenaCutter cutter(memory.data());
    require(cut_token_order(cutter, rows, order));
    const auto gpu_tokens = on_gpu(tokens);
    require(launch_token_order(gpu_tokens.data(), rows, vocabulary, order, nullptr));
    std::vector<uint32_t> sorted(tokens.size());
    std::vector<int32_t> sorted_rows(tokens.size());
    require(cudaMemcpy(sorted.data(), order.tokens, sorted.size() * sizeof(uint32_t),
                       cudaMemcpyDeviceToHost));
    require(cudaMemcpy(sorted_rows.data(), order.rows, sorted_rows.size() * sizeof(int32_t),
                       cudaMemcpyDeviceToHost));
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      REQUIRE(tokens[static_cast<std::size_t>(sorted_rows[i])] == sorted[i]);
      if (i == 0) continue;
      REQUIRE(std::pair(sorted[i - 1], sorted_rows[i - 1]) < std::pair(sorted[i], sorted_rows[i]));
    }
  }
}

}  // namespace farstep
