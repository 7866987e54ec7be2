// How near the element-wise kernels of the inner step come to the speed of copying memory.
//
//   kernels [--threads N] [--rows R] [--hidden C] [--intermediate F] [--vocabulary V] [--turns N]
//           [--instructions SET]
//
// All work on arrays far larger than the caches. A kernel's bytes are those it must read and write
// once each; its time and that of a copy by the same threads are taken in turns, and their medians
// make the ratio. A copy of n bytes moves 2 n, and goes by ordinary stores as the kernels do: what
// they write is read next, so that it belongs into the caches, which stores past them leave out.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/bench/instructions_option.h"
#include "tests/bench/turns.h"
#include "trainer/kernels/adamw.h"
#include "trainer/kernels/cross_entropy.h"
#include "trainer/kernels/embedding.h"
#include "trainer/kernels/numbers/convert.h"
#include "trainer/kernels/numbers/fp8.h"
#include "trainer/kernels/rms_norm.h"
#include "trainer/kernels/rotary.h"
#include "trainer/kernels/softmax.h"
#include "trainer/kernels/swiglu.h"
#include "trainer/model/parallel_rows.h"

using namespace farstep;

namespace {

struct Options {
  int threads = 2, turns = 9;
  int64_t rows = 8192, hidden = 1024, intermediate = 2688, vocabulary = 32000;
};

struct Kernel {
  std::string name;
  double bytes = 0;
  std::function<void()> run;
};

__attribute__((optimize("no-tree-loop-distribute-patterns"))) void copy_values(const float* from,
                                                                               float* to,
                                                                               int64_t size) {
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) to[i] = from[i];
}

std::vector<float> some_values(int64_t size) {
  std::vector<float> values(static_cast<std::size_t>(size));
  std::minstd_rand random;
  for (auto& value : values) value = static_cast<float>(random() % 2001) * 1e-3F - 1;
  return values;
}

// Enough memory for the largest kernel, as several arrays that are shared among all.
class Arrays {
 public:
  explicit Arrays(int64_t values) {
    for (auto& array : floats_) array = some_values(values);
    for (auto& array : halves_) array.resize(static_cast<std::size_t>(values), BF16{0x3f00});
  }
  float* floats(int which) { return floats_[which].data(); }
  BF16* halves(int which) { return halves_[which].data(); }

 private:
  std::vector<float> floats_[4];
  std::vector<BF16> halves_[2];
};

std::vector<Kernel> norm_kernels(const Options& options, Arrays& arrays) {
  const int64_t rows = options.rows, width = options.hidden;
  const auto values = static_cast<double>(rows * width);
  const auto weight = std::make_shared<std::vector<float>>(some_values(width));
  const auto inverse = std::make_shared<std::vector<float>>(some_values(rows));
  const auto forward = [=, &arrays] {
    for_rows(rows, [&](int64_t begin, int64_t end) {
      rms_norm(arrays.floats(0) + begin * width, weight->data(), end - begin, width, 1e-5F,
               arrays.halves(0) + begin * width, inverse->data() + begin,
               arrays.floats(1) + begin * width);
    });
  };
  const auto backward = [=, &arrays] {
    for_rows(rows, [&](int64_t begin, int64_t end) {
      std::vector<float> weight_gradient(static_cast<std::size_t>(width));
      rms_norm_backward(arrays.floats(0) + begin * width, arrays.floats(1) + begin * width,
                        weight->data(), inverse->data() + begin, end - begin, width,
                        arrays.floats(2) + begin * width, weight_gradient.data(),
                        arrays.halves(0) + begin * width);
    });
  };
  return {{"RMSNorm with the residual's copy", values * (4 + 2 + 4), forward},
          {"RMSNorm backward", values * (4 + 4 + 4 + 4 + 2), backward}};
}

std::vector<Kernel> gate_kernels(const Options& options, Arrays& arrays) {
  const int64_t rows = options.rows / 2, width = options.intermediate;
  const auto values = static_cast<double>(rows * width);
  const auto forward = [=, &arrays] {
    for_rows(rows, [&](int64_t begin, int64_t end) {
      swiglu(arrays.floats(0) + begin * 2 * width, end - begin, width,
             arrays.halves(0) + begin * 2 * width, arrays.halves(1) + begin * width);
    });
  };
  const auto backward = [=, &arrays] {
    for_rows(rows, [&](int64_t begin, int64_t end) {
      swiglu_backward(arrays.floats(0) + begin * width, arrays.halves(0) + begin * 2 * width,
                      end - begin, width, arrays.halves(1) + begin * 2 * width,
                      reinterpret_cast<BF16*>(arrays.floats(1)) + begin * width);
    });
  };
  return {{"SwiGLU", values * (8 + 4 + 2), forward},
          {"SwiGLU backward", values * (4 + 4 + 4 + 2), backward}};
}

std::vector<Kernel> row_kernels(const Options& options, Arrays& arrays) {
  const int64_t rows = options.rows, width = options.hidden;
  const auto values = static_cast<double>(rows * width);
  constexpr int64_t kHeadSize = 64, kLength = 512;
  const auto angles = std::make_shared<std::vector<float>>(some_values(kLength * kHeadSize / 2));
  const auto ids = std::make_shared<std::vector<int64_t>>(static_cast<std::size_t>(rows));
  std::minstd_rand random;
  for (auto& id : *ids) id = static_cast<int64_t>(random()) % rows;
  const RotaryRows shape{.sequence_length = kLength,
                         .rotated_heads = width / kHeadSize,
                         .other_heads = 0,
                         .head_size = kHeadSize,
                         .cosines = angles->data(),
                         .sines = angles->data()};
  const auto rotation = [=, &arrays] {
    for_rows(rows, [&, held = angles](int64_t begin, int64_t end) {
      rotate(shape, Rotation::kForward, arrays.floats(0), begin, end, arrays.halves(0));
    });
  };
  const auto rounding = [=, &arrays] {
    for_rows(rows, [&](int64_t begin, int64_t end) {
      round_rows(arrays.floats(0) + begin * width, width, end - begin, width,
                 arrays.halves(0) + begin * width, width);
    });
  };
  const auto embedding = [=, &arrays] {
    for_rows(rows, [&](int64_t begin, int64_t end) {
      embed(arrays.floats(0), ids->data() + begin, end - begin, width,
            arrays.floats(1) + begin * width);
    });
  };
  const auto embedding_backward = [=, &arrays] {
    for_rows(width, [&](int64_t begin, int64_t end) {
      embed_backward(arrays.floats(0), ids->data(), rows, width, begin, end, arrays.floats(1));
    });
  };
  return {{"rotation", values * (4 + 2), rotation},
          {"rounding to bf16", values * (4 + 2), rounding},
          {"embedding", values * (4 + 4), embedding},
          {"embedding backward", values * (4 + 4 + 4), embedding_backward}};
}

std::vector<Kernel> flat_kernels(const Options& options, Arrays& arrays) {
  const int64_t rows = options.rows * options.hidden / options.vocabulary;
  const int64_t width = options.vocabulary, size = options.rows * options.hidden;
  const auto logits = static_cast<double>(rows * width), values = static_cast<double>(size);
  const auto losses = std::make_shared<std::vector<float>>(static_cast<std::size_t>(rows));
  const auto targets = std::make_shared<std::vector<int64_t>>(static_cast<std::size_t>(rows), 7);
  const auto loss = [=, &arrays] {
    for_rows(rows, [&](int64_t begin, int64_t end) {
      cross_entropy(arrays.floats(3) + begin * width, targets->data() + begin, end - begin, width,
                    1e-3F, losses->data() + begin, arrays.halves(0) + begin * width);
    });
  };
  const AdamWStep step{.learning_rate = 1e-6F,
                       .beta1 = 0.9F,
                       .beta2 = 0.95F,
                       .epsilon = 1e-8F,
                       .weight_decay = 0.1F};
  const auto update = [=, &arrays] {
    for_rows(size, [&](int64_t begin, int64_t end) {
      adamw(step, arrays.floats(0) + begin, end - begin, arrays.floats(1) + begin,
            arrays.floats(2) + begin, arrays.floats(3) + begin, arrays.halves(0) + begin);
    });
  };
  const auto norm = [=, &arrays] {
    for_rows(size, [&](int64_t begin, int64_t end) {
      static_cast<void>(sum_of_squares(arrays.floats(0) + begin, end - begin));
    });
  };
  return {{"cross-entropy and its gradient", logits * (4 + 2), loss},
          {"sum of squares", values * 4, norm},
          {"AdamW with the bf16 copy", values * (16 + 12 + 2), update}};
}

// Of a head's scores, all keys of a query as good as seen: tiles of 64 queries against 1024 keys.
std::vector<Kernel> softmax_kernels(const Options& options, Arrays& arrays) {
  const ScoreTile tile{.first = 960, .rows = 64, .columns = 1024, .scale = 0.125F};
  const int64_t size = tile.rows * tile.columns;
  const int64_t tiles = options.rows * options.hidden / size;
  const auto values = static_cast<double>(tiles * size);
  const auto log_sums = std::make_shared<std::vector<float>>(some_values(tiles * tile.rows));
  const auto forward = [=, &arrays] {
    for_rows(tiles, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        causal_softmax(tile, arrays.floats(3) + i * size, arrays.halves(0) + i * size,
                       log_sums->data() + i * tile.rows);
      }
    });
  };
  const auto backward = [=, &arrays] {
    for_rows(tiles, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        causal_softmax_backward(tile, arrays.floats(3) + i * size, log_sums->data() + i * tile.rows,
                                arrays.floats(0) + i * size, arrays.halves(0) + i * size,
                                arrays.halves(1) + i * size);
      }
    });
  };
  return {{"softmax", values * (4 + 2), forward},
          {"softmax backward", values * (4 + 4 + 2 + 2), backward}};
}

std::vector<Kernel> fp8_kernels(const Options& options, Arrays& arrays) {
  const int64_t size = options.rows * options.hidden;
  const auto values = static_cast<double>(size);
  const auto largest = [=, &arrays] {
    for_rows(size, [&](int64_t begin, int64_t end) {
      static_cast<void>(largest_magnitude_bits(arrays.halves(0) + begin, end - begin));
    });
  };
  const auto rounding = [=, &arrays] {
    for_rows(size, [&](int64_t begin, int64_t end) {
      round_to_fp8(Fp8Format::kE4M3, arrays.halves(0) + begin, end - begin, 0x3f80,
                   arrays.halves(1) + begin);
    });
  };
  return {{"largest magnitude", values * 2, largest},
          {"rounding to fp8", values * (2 + 2), rounding}};
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Measures the element-wise kernels against a copy");
  app.add_option("--threads", options.threads);
  app.add_option("--turns", options.turns);
  app.add_option("--rows", options.rows);
  app.add_option("--hidden", options.hidden);
  app.add_option("--intermediate", options.intermediate);
  app.add_option("--vocabulary", options.vocabulary);
  add_instructions_option(app);
  CLI11_PARSE(app, argc, argv);
  at::set_num_threads(options.threads);
  const int64_t size = options.rows * std::max(options.hidden, options.intermediate);
  Arrays arrays(size);
  const auto copy = [&] {
    for_rows(size, [&](int64_t begin, int64_t end) {
      copy_values(arrays.floats(0) + begin, arrays.floats(2) + begin, end - begin);
    });
  };
  const double copied = 2.0 * sizeof(float) * static_cast<double>(size);
  fmt::print("{:<34}{:>10}{:>10}{:>16}\n", "kernel", "ms", "GB/s", "of a copy's");
  for (const auto& kernels : {norm_kernels(options, arrays), gate_kernels(options, arrays),
                              row_kernels(options, arrays), flat_kernels(options, arrays),
                              softmax_kernels(options, arrays), fp8_kernels(options, arrays)}) {
    for (const auto& kernel : kernels) {
      const auto times = take_turns(options.turns, kernel.run, copy);
      const double rate = kernel.bytes / times.own, copy_rate = copied / times.other;
      fmt::print("{:<34}{:>10.2f}{:>10.2f}{:>16.2f}\n", kernel.name, times.own * 1e3, rate * 1e-9,
                 rate / copy_rate);
    }
  }
}
