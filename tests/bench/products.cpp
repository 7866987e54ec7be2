// How fast the bf16 products of a model's step are: ours, MKL's, and what the matrix unit can do.
//
//   products [--threads N] [--rows R] [--hidden C] [--intermediate F] [--vocabulary V] [--turns N]
//
// Ours and MKL's are taken in turns; medians. The matrix unit's rate is that of tile products whose
// factors stay in registers, by all threads at once.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "trainer/kernels/amx.h"
#include "trainer/kernels/amx_product.h"
#include "trainer/model/matrix_product.h"

using namespace farstep;

namespace {

struct Options {
  int threads = 2, turns = 11;
  int64_t rows = 1024, hidden = 1024, intermediate = 2736, vocabulary = 32000;
};

struct Shape {
  std::string name;
  int64_t m, n, k;
  bool a_transposed, b_transposed;
};

std::vector<Shape> shapes_of(const Options& options) {
  const auto [threads, turns, rows, hidden, width, vocabulary] = options;
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

double seconds_of(const std::function<void()>& work) {
  const auto began = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

double median(std::vector<double> times) {
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
  return times[times.size() / 2];
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

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Measures the bf16 products of a step");
  app.add_option("--threads", options.threads);
  app.add_option("--turns", options.turns);
  app.add_option("--rows", options.rows);
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
             "product (TFLOPS)", "ours", "MKL's", "ratio", "of unit");
  for (const auto& [name, m, n, k, a_transposed, b_transposed] : shapes_of(options)) {
    const auto a = some_values(m * k), b = some_values(k * n);
    auto c = at::empty({m, n}, at::kFloat);  // begins with a line, as a model's parameters do
    const Factor<BF16> left{a.data(), a_transposed ? m : k, a_transposed};
    const Factor<BF16> right{b.data(), b_transposed ? k : n, b_transposed};
    const Product to{c.mutable_data_ptr<float>(), n, false, /*past_cache=*/a_transposed};
    std::vector<double> own, mkl;
    for (int turn = 0; turn <= options.turns; ++turn) {
      const double by_own = seconds_of([&] { multiply_by_amx(m, n, k, left, right, to); });
      const double by_mkl = seconds_of([&] { multiply_by_mkl(m, n, k, left, right, to); });
      if (turn == 0) continue;
      own.push_back(by_own);
      mkl.push_back(by_mkl);
    }
    const double operations = 2.0 * static_cast<double>(m * n) * static_cast<double>(k);
    fmt::print("{:<34}{:>8.2f}{:>8.2f}{:>8.2f}{:>12.2f}\n", name, operations / median(own) * 1e-12,
               operations / median(mkl) * 1e-12, median(mkl) / median(own),
               operations / median(own) / unit);
  }
}
