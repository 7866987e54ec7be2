// Sizes at which 32 bits do not number all values, or all bytes: 16,384 rows at vocabularies of
// 32000 and 128256, the parameters of the 150M preset and of a model of 1.2B, and more than 2^32.
#include "tests/trainer/kernels/adamw_step.h"
#include "tests/trainer/kernels/gpu/far_end.h"
#include "tests/trainer/kernels/gpu/on_gpu.h"
#include "trainer/kernels/cross_entropy.h"
#include "trainer/kernels/gpu/adamw.h"
#include "trainer/kernels/gpu/cross_entropy.h"
#include "trainer/kernels/gpu/embedding.h"
#include "trainer/kernels/gpu/rotary.h"

namespace farstep {

namespace {

constexpr int64_t kRows = 16'384;
constexpr int64_t kParameters[] = {214'983'680, 1'235'814'403, 5'000'000'005};

}  // namespace

TEST_CASE("the last rows of many logits are a CPU's") {
  for (const auto& [rows, vocabulary] : std::vector<std::pair<int64_t, int64_t>>{
           {kRows, 32'000}, {kRows, 128'256}, {40'000, 128'256}, {90'000, 50'257}}) {
    const SparseArray<float> logits(rows * vocabulary), losses(rows);
    const SparseArray<BF16> gradient(rows * vocabulary);
    const SparseArray<int64_t> targets(rows);
    const int64_t row = rows - 1, begin = row * vocabulary;
    auto own = random_values(vocabulary, 3);
    std::ranges::copy(own, logits.data() + begin);
    targets[row] = vocabulary - 1;
    const LastBlocks last(1);
    require(launch_cross_entropy(logits.data(), targets.data(), rows, vocabulary, 0.5F,
                                 losses.data(), gradient.data(), nullptr));
    float loss = 0;
    std::vector<BF16> wanted(own.size());
    cross_entropy(own.data(), &targets[row], 1, vocabulary, 0.5F, &loss, wanted.data());
    CHECK(losses[row] == Approx(loss).epsilon(1e-5));
    const BF16* const found = gradient.data() + begin;
    CHECK(far_values({found, found + vocabulary}, wanted) == 0);
  }
}

TEST_CASE("the last values of many parameters are updated as a CPU does") {
  for (const int64_t size : kParameters) {
    const SparseArray<float> gradients(size), values(size), first(size), second(size);
    const SparseArray<BF16> copy(size);
    const int64_t begin = size - 5000, count = size - begin;
    const auto own = random_values(count), start = random_values(count);
    std::ranges::copy(own, gradients.data() + begin);
    std::ranges::copy(start, values.data() + begin);
    const StepRequest request{.update = kThirdStep};
    const StepOutcome outcome{.gradient_factor = 1, .taken = 1};
    const DecayStretch all{0, size, true};
    const auto chunks = adamw_chunks(std::span(&all, 1));
    {
      const LastBlocks last(3);
      require(launch_adamw(
          &request, &outcome, chunks.data(), std::ssize(chunks),
          {gradients.data(), values.data(), first.data(), second.data(), copy.data()}, nullptr));
    }
    auto wanted = start;
    std::vector<float> wanted_first(own.size()), wanted_second(own.size());
    std::vector<BF16> wanted_copy(own.size());
    auto step = kThirdStep;
    step.gradient_factor = 1;
    adamw(step, own.data(), count, wanted.data(), wanted_first.data(), wanted_second.data(),
          wanted_copy.data());
    const float* const found = values.data() + begin;
    CHECK(relative_error(std::vector<float>(found, found + count), exact(wanted)) < 1e-6);
    CHECK(equal_bits(std::vector<BF16>(copy.data() + begin, copy.data() + size),
                     as<BF16>(std::vector<float>(found, found + count))));
    CHECK(values[begin - 3 * kChunkValues] == 0);
  }
}

TEST_CASE("the last gradients of many count in their norm") {
  for (const int64_t size : kParameters) {
    const SparseArray<float> gradients(size);
    std::vector<double> parts(static_cast<std::size_t>(norm_parts(size)));
    const StepRequest request;
    StepOutcome outcome;
    // A block of threads has every so many packs of four; the first has what is left of one.
    const auto blocks = std::ssize(parts);
    int64_t pack = size / 4 - 1;
    while (pack / kMostThreads % blocks != blocks - 1) --pack;
    gradients[4 * pack] = 3;
    if (size % 4 > 0) gradients[size - 1] = 4;
    emulated_choice = [](unsigned x, unsigned count) { return x == 0 || x == count - 1; };
    require(launch_step_outcome({.gradients = gradients.data(), .size = size}, &request,
                                parts.data(), &outcome, nullptr));
    emulated_choice = nullptr;
    CHECK(outcome.gradient_norm == (size % 4 > 0 ? 5 : 3));
  }
}

TEST_CASE("the last rows of a large table are embedded and take their gradients") {
  const int64_t vocabulary = 128'256;
  for (const int64_t width : {2048, 40'960}) {
    const SparseArray<float> table(vocabulary * width), x(kRows * width);
    std::vector<int64_t> tokens(kRows);
    for (int64_t row = 0; row < kRows; ++row) tokens[static_cast<std::size_t>(row)] = row;
    // More rows of one token than a block adds up.
    const int64_t common = 40, token = vocabulary - 1;
    std::fill(tokens.end() - common, tokens.end(), token);
    for (int64_t column = 0; column < width; ++column) {
      table[token * width + column] = static_cast<float>(column);
    }
    const LastBlocks last(1);
    require(launch_embed(table.data(), tokens.data(), kRows, width, x.data(), nullptr));
    CHECK(x[kRows * width - 1] == static_cast<float>(width - 1));

    for (int64_t row = kRows - common; row < kRows; ++row) {
      std::fill_n(x.data() + row * width, width, static_cast<float>(row));
    }
    EmbedRoom room;
    ArenaCutter counter(nullptr);
    require(cut_embed_room(counter, kRows, width, room));
    std::vector<std::byte> memory(static_cast<std::size_t>(counter.bytes()) + 64);
    auto* const aligned = memory.data() + 64 - reinterpret_cast<uintptr_t>(memory.data()) % 64;
    ArenaCutter cutter(aligned);
    require(cut_embed_room(cutter, kRows, width, room));
    // All blocks number the rows, 64 of them; the last two parts of 512 hold the token.
    emulated_choice = [](unsigned part, unsigned parts) {
      return parts <= 64 || part + 2 >= parts;
    };
    require(launch_embed_backward({.x_gradient = x.data(),
                                   .tokens = tokens.data(),
                                   .rows = kRows,
                                   .width = width,
                                   .vocabulary = vocabulary},
                                  room, table.data(), nullptr));
    const auto sum = static_cast<float>(common * (2 * kRows - common - 1) / 2);
    CHECK(table[token * width] == sum);
    CHECK(table[vocabulary * width - 1] == sum + static_cast<float>(width - 1));
  }
}

TEST_CASE("the last of many rows is rotated by its position") {
  const int64_t length = 1024, half = 32;
  const auto cosines = random_values(length * half), sines = random_values(length * half);
  const RotaryRows shape{.sequence_length = length,
                         .rotated_heads = 64,
                         .other_heads = 32,
                         .head_size = 2 * half,
                         .cosines = cosines.data(),
                         .sines = sines.data()};
  const auto width = static_cast<std::size_t>(shape.width());
  for (const int64_t rows : {kRows - 3, int64_t{1'000'003}}) {
    const SparseArray<BF16> heads(rows * shape.width());
    const auto own = as<BF16>(random_values(shape.width()));
    BF16* const row = heads.data() + (rows - 1) * shape.width();
    std::ranges::copy(own, row);
    const LastBlocks last(1);
    require(launch_rotate(shape, rows, heads.data(), nullptr));
    std::vector<float> exact_heads;
    for (const BF16 value : own) exact_heads.push_back(to_float(value));
    // The same position, as the first of a sequence that begins there.
    auto at_position = shape;
    const int64_t angles = (rows - 1) % length * half;
    at_position.cosines += angles;
    at_position.sines += angles;
    std::vector<BF16> wanted(width);
    rotate(at_position, Rotation::kForward, exact_heads.data(), 0, 1, wanted.data());
    CHECK(far_values({row, row + width}, wanted) == 0);
  }
}

}  // namespace farstep
