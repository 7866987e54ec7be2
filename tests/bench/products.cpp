// How fast each way makes the products and the attention of a model's step.
//
//   products [--compute bf16|fp32] [--instructions SET] [--threads N] [--rows R] [--length T]
//            [--hidden C] [--intermediate F] [--vocabulary V] [--turns N]
//
// All ways that this processor has take turns; medians. With AMX the first line is what the matrix
// unit can do at most: tile products whose factors stay in registers, by all threads at once.
// Attention, of heads of 64 values, is that of bf16; its operations are those that causality
// leaves.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/bench/turns.h"
#include "trainer/base/processor/instruction_set.h"
#include "trainer/kernels/products/panel_kernels.h"
#include "trainer/model/cpu_instructions.h"
#include "trainer/model/cpu_ops/cpu_attention.h"
#include "trainer/model/fused/arena.h"
#include "trainer/model/matmul/product_choice.h"

using namespace farstep;

namespace {

struct Options {
  int threads = 2, turns = 7;
  int64_t rows = 1024, length = 512, hidden = 1024, intermediate = 2688, vocabulary = 32000;
  std::string compute = "bf16", instructions = "amx";
};

struct Shape {
  std::string name;
  int64_t m, n, k;
  bool a_transposed, b_transposed;
};

std::vector<Shape> shapes_of(const Options& options) {
  const int64_t rows = options.rows, hidden = options.hidden, width = options.intermediate;
  return {{"heads", rows, 3 * hidden, hidden, false, true},
          {"gate and up", rows, 2 * width, hidden, false, true},
          {"down", rows, hidden, width, false, true},
          {"head", rows, options.vocabulary, hidden, false, true},
          {"heads, input's gradient", rows, hidden, 3 * hidden, false, false},
          {"gate and up, input's gradient", rows, hidden, 2 * width, false, false},
          {"head, input's gradient", rows, hidden, options.vocabulary, false, false},
          {"output, weight's gradient", hidden, hidden, rows, true, false},
          {"gate and up, weight's gradient", 2 * width, hidden, rows, true, false},
          {"down, weight's gradient", hidden, width, rows, true, false},
          {"head, weight's gradient", options.vocabulary, hidden, rows, true, false}};
}

template <typename T>
std::vector<T> some_values(int64_t size) {
  std::vector<T> values(static_cast<std::size_t>(size));
  std::minstd_rand random;
  for (auto& value : values) value = rounded<T>(static_cast<float>(random() % 2001) * 1e-3F - 1);
  return values;
}

// Operations a second of all threads.
double matrix_unit_rate(int threads) {
  constexpr int64_t kTileProducts = 4'000'000;
  const auto multiply_all = [&] {
    at::parallel_for(0, threads, 1, [](int64_t, int64_t) { amx_tile_products(kTileProducts); });
  };
  multiply_all();
  return threads * kTileProducts * kAmxTileOperations / seconds_of(multiply_all);
}

void print_rates(const std::string& name, double operations, const std::vector<double>& seconds) {
  fmt::print("{:<34}", name);
  for (const double time : seconds) fmt::print("{:>13.3f}", operations / time * 1e-12);
  fmt::print("\n");
  std::fflush(stdout);
}

template <typename T>
void compare_products(const Options& options) {
  std::vector<ProductWay> ways;
  fmt::print("{:<34}", "TFLOPS");
  for (int i = 0; i < kProductWays; ++i) {
    const auto way = static_cast<ProductWay>(i);
    if (!can_multiply_by<T>(way)) continue;
    ways.push_back(way);
    fmt::print("{:>13}", name_of(way));
  }
  fmt::print("\n");
  for (const auto& shape : shapes_of(options)) {
    const auto [m, n, k] = std::array{shape.m, shape.n, shape.k};
    const auto a = some_values<T>(m * k), b = some_values<T>(k * n);
    auto c = at::empty({m, n}, at::kFloat);  // begins with a line, as a model's parameters do
    const Factor<T> left{a.data(), shape.a_transposed ? m : k, shape.a_transposed};
    const Factor<T> right{b.data(), shape.b_transposed ? k : n, shape.b_transposed};
    const Product to{c.mutable_data_ptr<float>(), n, false, /*past_cache=*/shape.a_transposed};
    std::vector<std::function<void()>> works;
    for (const auto way : ways) {
      works.push_back([=] { multiply_by(way, m, n, k, left, right, to); });
    }
    print_rates(shape.name, 2.0 * static_cast<double>(m * n) * static_cast<double>(k),
                take_turns(options.turns, works));
  }
}

void compare_attention(const Options& options) {
  constexpr int64_t kHeadSize = 64;
  const int64_t heads = options.hidden / kHeadSize;
  const AttentionShape shape{options.rows / options.length, options.length, heads, heads,
                             kHeadSize};
  const auto queries = some_values<BF16>(shape.rows() * shape.width());
  const auto d_mixed = some_values<BF16>(shape.rows() * shape.mixed_width());
  std::vector<BF16> mixed(d_mixed.size());
  std::vector<float> log_sums(static_cast<std::size_t>(shape.rows() * heads));
  std::vector<float> gradient(queries.size());
  std::vector<std::optional<InstructionSet>> ways;
  fmt::print("{:<34}", "TFLOPS");
  for (const auto set : {InstructionSet::kAmx, InstructionSet::kAvx512Bf16}) {
    if (!attends_heads_by(set)) continue;
    ways.emplace_back(set);
    fmt::print("{:>13}", enum_names(set)[static_cast<std::size_t>(set)]);
  }
  ways.emplace_back(std::nullopt);
  choose_products_by_measuring<BF16>();
  fmt::print("{:>13}\n", "by products");
  std::vector<std::function<void()>> forward, backward;
  std::vector<Arena> arenas;
  for (const auto by : ways) {
    arenas.emplace_back(at::kCPU);
    const auto scratch = arenas.back().cut([&](ArenaCutter& cutter) {
      return cut_attention_scratch<BF16>(cutter, shape, options.threads, by);
    });
    forward.push_back(
        [&, scratch] { attend(shape, queries.data(), scratch, mixed.data(), log_sums.data()); });
    backward.push_back([&, scratch] {
      attend_backward<BF16>(shape, {queries.data(), mixed.data(), log_sums.data()}, d_mixed.data(),
                            scratch, gradient.data());
    });
  }
  // Of one product with all scores that causality leaves.
  const double operations =
      static_cast<double>(shape.rows() * options.length) * static_cast<double>(options.hidden);
  print_rates("attention", 2 * operations, take_turns(options.turns, forward));
  print_rates("attention, backward", 5 * operations, take_turns(options.turns, backward));
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const auto names = enum_names(InstructionSet{});
  CLI::App app("Measures the products and the attention of a step");
  app.add_option("--compute", options.compute)->check(CLI::IsMember({"bf16", "fp32"}));
  app.add_option("--instructions", options.instructions)
      ->check(CLI::IsMember(std::vector<std::string>(names.begin(), names.end())));
  app.add_option("--threads", options.threads);
  app.add_option("--turns", options.turns);
  app.add_option("--rows", options.rows);
  app.add_option("--length", options.length);
  app.add_option("--hidden", options.hidden);
  app.add_option("--intermediate", options.intermediate);
  app.add_option("--vocabulary", options.vocabulary);
  CLI11_PARSE(app, argc, argv);
  limit_cpu_instructions(
      static_cast<InstructionSet>(std::ranges::find(names, options.instructions) - names.begin()));
  at::set_num_threads(options.threads);
  if (has_instructions(InstructionSet::kAmx)) {
    fmt::print("the matrix unit: {:.2f} TFLOPS\n", matrix_unit_rate(options.threads) * 1e-12);
  }
  if (options.compute == "fp32") {
    compare_products<float>(options);
  } else {
    compare_products<BF16>(options);
    compare_attention(options);
  }
}
