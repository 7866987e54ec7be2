// How fast the bf16 products and the attention of a model's step are by the processor's matrix
// instructions, against another way and against what the matrix unit can do.
//
//   products [--threads N] [--rows R] [--length T] [--hidden C] [--intermediate F] [--vocabulary V]
//            [--turns N]
//
// Taken in turns, medians: products by kernels/amx_product against MKL's, attention by
// kernels/amx_attention against tiles of whole products. The matrix unit's rate is that of tile
// products whose factors stay in registers, by all threads at once. Attention's heads have 64
// values; its operations are those that causality leaves.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/bench/turns.h"
#include "trainer/kernels/amx.h"
#include "trainer/kernels/amx_product.h"
#include "trainer/model/arena.h"
#include "trainer/model/cpu_attention.h"
#include "trainer/model/matrix_product.h"

using namespace farstep;

namespace {

struct Options {
  int threads = 2, turns = 11;
  int64_t rows = 1024, length = 512, hidden = 1024, intermediate = 2736, vocabulary = 32000;
};

struct Shape {
  std::string name;
  int64_t m, n, k;
  bool a_transposed, b_transposed;
};

std::vector<Shape> shapes_of(const Options& options) {
  const auto [threads, turns, rows, length, hidden, width, vocabulary] = options;
  return {{"heads", rows, 3 * hidden, hidden, false, true},
          {"gate and up", rows, 2 * width, hidden, false, true},
          {"down", rows, hidden, width, false, true},
          {"head", rows, vocabulary, hidden, false, true},
          {"heads, input's gradient", rows, hidden, 3 * hidden, false, false},
          {"gate and up, input's gradient", rows, hidden, 2 * width, false, false},
          {"head, input's gradient", rows, hidden, vocabulary, false, false},
          {"output, weight's gradient", hidden, hidden, rows, true, false},
          {"gate and up, weight's gradient", 2 * width, hidden, rows, true, false},
          {"down, weight's gradient", hidden, width, rows, true, false},
          {"head, weight's gradient", vocabulary, hidden, rows, true, false}};
}

std::vector<BF16> some_values(int64_t size) {
  std::vector<BF16> values(static_cast<std::size_t>(size));
  std::minstd_rand random;
  for (auto& value : values) value = rounded<BF16>(static_cast<float>(random() % 2001) * 1e-3F - 1);
  return values;
}

// Operations a second of all threads.
double unit_rate(int threads) {
  constexpr int64_t kTileProducts = 4'000'000;
  const auto multiply_all = [&] {
    at::parallel_for(0, threads, 1, [](int64_t, int64_t) { amx_tile_products(kTileProducts); });
  };
  multiply_all();
  const double seconds = seconds_of(multiply_all);
  return threads * kTileProducts * kAmxTileOperations / seconds;
}

// Takes both ways in turns and prints their rates.
void compare(const Options& options, const std::string& name, double operations, double unit,
             const std::function<void()>& own, const std::function<void()>& other) {
  const auto times = take_turns(options.turns, own, other);
  fmt::print("{:<34}{:>8.2f}{:>8.2f}{:>8.2f}{:>12.2f}\n", name, operations / times.own * 1e-12,
             operations / times.other * 1e-12, times.other / times.own,
             operations / times.own / unit);
}

void compare_products(const Options& options, double unit) {
  for (const auto& [name, m, n, k, a_transposed, b_transposed] : shapes_of(options)) {
    const auto a = some_values(m * k), b = some_values(k * n);
    auto c = at::empty({m, n}, at::kFloat);  // begins with a line, as a model's parameters do
    const Factor<BF16> left{a.data(), a_transposed ? m : k, a_transposed};
    const Factor<BF16> right{b.data(), b_transposed ? k : n, b_transposed};
    const Product to{c.mutable_data_ptr<float>(), n, false, /*past_cache=*/a_transposed};
    const int64_t rows = m, columns = n, inner = k;  // which lambdas can take
    compare(
        options, name, 2.0 * static_cast<double>(m * n) * static_cast<double>(k), unit,
        [&] { multiply_by_amx(rows, columns, inner, left, right, to); },
        [&] { multiply_by_mkl(rows, columns, inner, left, right, to); });
  }
}

void compare_attention(const Options& options, double unit) {
  constexpr int64_t kHeadSize = 64;
  const int64_t heads = options.hidden / kHeadSize;
  const AttentionShape shape{options.rows / options.length, options.length, heads, heads,
                             kHeadSize};
  const auto queries = some_values(shape.rows() * shape.width());
  const auto d_mixed = some_values(shape.rows() * shape.mixed_width());
  std::vector<BF16> mixed(d_mixed.size());
  std::vector<float> log_sums(static_cast<std::size_t>(shape.rows() * heads));
  std::vector<float> gradient(queries.size());
  Arena arenas[] = {Arena(at::kCPU), Arena(at::kCPU)};
  const auto scratch_of = [&](bool by_amx) {
    return arenas[by_amx ? 1 : 0].cut([&](ArenaCutter& cutter) {
      return cut_attention_scratch<BF16>(cutter, shape, options.threads, by_amx);
    });
  };
  const auto by_amx = scratch_of(true), by_products = scratch_of(false);
  const auto forward = [&](const AttentionScratch<BF16>& scratch) {
    attend(shape, queries.data(), scratch, mixed.data(), log_sums.data());
  };
  const auto backward = [&](const AttentionScratch<BF16>& scratch) {
    attend_backward<BF16>(shape, {queries.data(), mixed.data(), log_sums.data()}, d_mixed.data(),
                          scratch, gradient.data());
  };
  // Of one product with all scores that causality leaves.
  const double operations =
      static_cast<double>(shape.rows() * options.length) * static_cast<double>(options.hidden);
  compare(
      options, "attention", 2 * operations, unit, [&] { forward(by_amx); },
      [&] { forward(by_products); });
  compare(
      options, "attention, backward", 5 * operations, unit, [&] { backward(by_amx); },
      [&] { backward(by_products); });
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Measures the bf16 products and the attention of a step");
  app.add_option("--threads", options.threads);
  app.add_option("--turns", options.turns);
  app.add_option("--rows", options.rows);
  app.add_option("--length", options.length);
  app.add_option("--hidden", options.hidden);
  app.add_option("--intermediate", options.intermediate);
  app.add_option("--vocabulary", options.vocabulary);
  CLI11_PARSE(app, argc, argv);
  at::set_num_threads(options.threads);
  if (!has_amx()) {
    fmt::print("this processor has no AMX: all products are MKL's\n");
    return 0;
  }
  const double unit = unit_rate(options.threads);
  fmt::print("the matrix unit: {:.2f} TFLOPS\n{:<34}{:>8}{:>8}{:>8}{:>12}\n", unit * 1e-12,
             "TFLOPS", "ours", "other", "ratio", "of unit");
  compare_products(options, unit);
  compare_attention(options, unit);
}
