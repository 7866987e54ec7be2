#include "trainer/kernels/products/head_attention.h"

#include <cmath>
#include <cstddef>
#include <memory>

#include "tests/support/catch.h"
#include "tests/support/skip_instructions.h"
#include "tests/trainer/kernels/random_values.h"

namespace farstep {

namespace {

// (T, D) in rows `stride` apart, in fp64.
std::vector<double> exact_rows(const HeadShape& head, const std::vector<BF16>& rows,
                               int64_t stride) {
  std::vector<double> values;
  for (int64_t row = 0; row < head.length; ++row) {
    for (int64_t i = 0; i < head.size; ++i) {
      values.push_back(to_float(rows[static_cast<std::size_t>(row * stride + i)]));
    }
  }
  return values;
}

std::vector<float> rows_of(const HeadShape& head, const std::vector<float>& rows) {
  std::vector<float> values;
  for (int64_t row = 0; row < head.length; ++row) {
    const auto first = rows.begin() + row * head.stride;
    values.insert(values.end(), first, first + head.size);
  }
  return values;
}

// Attention and its gradients as the formulas have them.
struct Exact {
  std::vector<double> mixed, log_sums, d_query, d_key, d_value;
};

Exact exact_attention(const HeadShape& head, const std::vector<double>& query,
                      const std::vector<double>& key, const std::vector<double>& value,
                      const std::vector<double>& d_mixed) {
  const int64_t length = head.length, size = head.size;
  const double scale = head.scale;
  const auto dot = [size](const std::vector<double>& x, int64_t i, const std::vector<double>& y,
                          int64_t j) {
    double sum = 0;
    for (int64_t d = 0; d < size; ++d) sum += x[i * size + d] * y[j * size + d];
    return sum;
  };
  const std::vector<double> zeros(static_cast<std::size_t>(length * size));
  Exact exact{.mixed = zeros, .log_sums = {}, .d_query = zeros, .d_key = zeros, .d_value = zeros};
  for (int64_t i = 0; i < length; ++i) {
    double sum = 0, mean = 0;
    for (int64_t j = 0; j <= i; ++j) sum += std::exp(scale * dot(query, i, key, j));
    exact.log_sums.push_back(std::log(sum));
    const auto probability = [&](int64_t j) {
      return std::exp(scale * dot(query, i, key, j)) / sum;
    };
    for (int64_t j = 0; j <= i; ++j) mean += probability(j) * dot(d_mixed, i, value, j);
    for (int64_t j = 0; j <= i; ++j) {
      const double p = probability(j);
      const double d_score = p * (dot(d_mixed, i, value, j) - mean) * scale;
      for (int64_t d = 0; d < size; ++d) {
        exact.mixed[i * size + d] += p * value[j * size + d];
        exact.d_query[i * size + d] += d_score * key[j * size + d];
        exact.d_key[j * size + d] += d_score * query[i * size + d];
        exact.d_value[j * size + d] += p * d_mixed[i * size + d];
      }
    }
  }
  return exact;
}

class Scratch {
 public:
  explicit Scratch(const HeadShape& head) {
    ArenaCutter counter(nullptr);
    cut_head_scratch(counter, head);
    memory_.reset(new (std::align_val_t{64}) std::byte[static_cast<std::size_t>(counter.bytes())]);
    // What it held before must not matter.
    std::fill_n(memory_.get(), counter.bytes(), std::byte{0xff});
    ArenaCutter cutter(memory_.get());
    parts_ = cut_head_scratch(cutter, head);
  }
  const HeadScratch& parts() const { return parts_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { operator delete[](memory, std::align_val_t{64}); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  HeadScratch parts_;
};

// Random rows with NaN between them.
std::vector<BF16> random_rows(const HeadShape& head, int64_t stride) {
  auto rows = as<BF16>(random_values(head.length * stride));
  for (int64_t row = 0; row < head.length; ++row) {
    for (int64_t i = head.size; i < stride; ++i) {
      rows[static_cast<std::size_t>(row * stride + i)] = rounded<BF16>(NAN);
    }
  }
  return rows;
}

// Where the processor has neither, the test is skipped.
bool is_missing(InstructionSet set) {
  if (attends_heads_by(set)) return false;
  if (attends_heads_by(InstructionSet::kAvx512Bf16)) return true;
  skip_for_lack_of(set);
  return true;
}

std::vector<double> twice(std::vector<double> values) {
  for (auto& value : values) value *= 2;
  return values;
}

}  // namespace

TEST_CASE("attention of a head and every gradient are those of fp64") {
  const auto by = GENERATE(InstructionSet::kAmx, InstructionSet::kAvx512Bf16);
  if (is_missing(by)) return;
  const auto length = GENERATE(1, 2, 31, 32, 33, 64, 100, 161);
  const auto size = GENERATE(2, 6, 16, 30, 32, 34, 64, 128);
  INFO("length " << length << ", size " << size);
  const HeadShape head{.length = length,
                       .size = size,
                       .stride = size + 5,
                       .mixed_stride = size + 3,
                       .scale = 1 / std::sqrt(static_cast<float>(size))};
  const auto query = random_rows(head, head.stride), key = random_rows(head, head.stride);
  const auto value = random_rows(head, head.stride);
  const auto d_mixed = random_rows(head, head.mixed_stride);
  const auto wanted = exact_attention(
      head, exact_rows(head, query, head.stride), exact_rows(head, key, head.stride),
      exact_rows(head, value, head.stride), exact_rows(head, d_mixed, head.mixed_stride));
  const Scratch scratch(head);

  std::vector<BF16> mixed(static_cast<std::size_t>(length * head.mixed_stride), BF16{0x1234});
  std::vector<float> log_sums(static_cast<std::size_t>(length));
  attend_head(by, head, query.data(), key.data(), value.data(), scratch.parts(), mixed.data(),
              log_sums.data());
  std::vector<BF16> inside;
  for (int64_t row = 0; row < length; ++row) {
    const auto first = mixed.begin() + row * head.mixed_stride;
    inside.insert(inside.end(), first, first + size);
    for (int64_t i = size; i < head.mixed_stride; ++i) CHECK((first + i)->bits == 0x1234);
  }
  CHECK(relative_error(inside, wanted.mixed) < 8e-3);
  CHECK(relative_error(log_sums, wanted.log_sums, 1) < 1e-5);

  const auto values = static_cast<std::size_t>(length * head.stride);
  std::vector<float> d_query(values), d_key(values), d_value(values);
  HeadBackward<BF16> backward{.query = query.data(),
                              .key = key.data(),
                              .value = value.data(),
                              .mixed = mixed.data(),
                              .d_mixed = d_mixed.data(),
                              .log_sums = log_sums.data(),
                              .d_query = d_query.data(),
                              .d_key = d_key.data(),
                              .d_value = d_value.data()};
  attend_head_backward(by, head, backward, scratch.parts());
  // Of few positions, or where one probability is all, gradients are differences that nearly
  // vanish, and rounding is seen against what they are made of.
  const double least = std::sqrt(static_cast<double>(size));
  CHECK(relative_error(rows_of(head, d_query), wanted.d_query, least) < 2e-2);
  CHECK(relative_error(rows_of(head, d_key), wanted.d_key, least) < 2e-2);
  CHECK(relative_error(rows_of(head, d_value), wanted.d_value) < 8e-3);

  backward.adds = true;  // another query head of the group
  attend_head_backward(by, head, backward, scratch.parts());
  CHECK(relative_error(rows_of(head, d_query), wanted.d_query, least) < 2e-2);
  CHECK(relative_error(rows_of(head, d_key), twice(wanted.d_key), least) < 2e-2);
  CHECK(relative_error(rows_of(head, d_value), twice(wanted.d_value)) < 8e-3);
}

TEST_CASE("attention of a head keeps to scores far from zero, and a NaN to who sees it") {
  const auto by = GENERATE(InstructionSet::kAmx, InstructionSet::kAvx512Bf16);
  if (is_missing(by)) return;
  const HeadShape head{.length = 70, .size = 32, .stride = 32, .mixed_stride = 32, .scale = 0.2F};
  auto query = random_rows(head, 32), key = random_rows(head, 32);
  const auto value = random_rows(head, 32);
  for (auto& x : query) x = rounded<BF16>(to_float(x) * 60);
  const Scratch scratch(head);
  std::vector<BF16> mixed(static_cast<std::size_t>(head.length * 32));
  std::vector<float> log_sums(static_cast<std::size_t>(head.length));
  const auto attend = [&] {
    attend_head(by, head, query.data(), key.data(), value.data(), scratch.parts(), mixed.data(),
                log_sums.data());
  };
  attend();
  const auto wanted = exact_attention(head, exact_rows(head, query, 32), exact_rows(head, key, 32),
                                      exact_rows(head, value, 32), exact_rows(head, value, 32));
  CHECK(relative_error(mixed, wanted.mixed) < 8e-3);
  CHECK(relative_error(log_sums, wanted.log_sums) < 1e-5);

  key[40 * 32] = rounded<BF16>(NAN);
  attend();
  for (int64_t row = 0; row < head.length; ++row) {
    const auto index = static_cast<std::size_t>(row);
    CHECK(std::isnan(log_sums[index]) == (row >= 40));
    CHECK(std::isnan(to_float(mixed[index * 32])) == (row >= 40));
  }
}

}  // namespace farstep
