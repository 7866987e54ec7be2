#include "trainer/data/example_form.h"

#include <array>
#include <cstring>

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

// A label and two numbers.
const ExampleForm kForm{.parts = {{.dtype = DType::kI64, .shape = {}, .num_values = 10},
                                  {.dtype = DType::kF32, .shape = {2, 1}}},
                        .targets = 3,
                        .text = "pairs"};

}  // namespace

TEST_CASE("a blank batch has the room that its form says") {
  CHECK(kForm.example_bytes() == 16);
  for (const int64_t examples : {0, 1, 5}) {
    const auto blank = blank_batch(kForm, examples);
    const auto& view = blank.batch.view;
    CHECK(view.examples == examples);
    CHECK(view.targets == 3 * examples);
    CHECK(view.text == "pairs");
    REQUIRE(view.parts.size() == 2);
    CHECK(view.parts[1].shape == std::vector<int64_t>{2, 1});
    for (std::size_t part = 0; part < 2; ++part) {
      CHECK(view.parts[part].dtype == kForm.parts[part].dtype);
      CHECK(view.parts[part].bytes.size() == static_cast<std::size_t>(8 * examples));
      CHECK(view.parts[part].bytes.data() == blank.parts[part].data());
    }
  }
}

TEST_CASE("memory of another size than the examples' is no batch") {
  const std::array<std::byte, 16> memory{};
  const std::span<const std::byte> all(memory);
  CHECK_NOTHROW(view_of(kForm, 2, std::array{all, all}));
  CHECK_THROWS_AS(view_of(kForm, 1, std::array{all, all}), InternalError);
  CHECK_THROWS_AS(view_of(kForm, 2, std::array{all}), InternalError);
}

TEST_CASE("only values that index something are checked, and each of them") {
  const auto blank = blank_batch(kForm, 3);
  CHECK_FALSE(unfit_value(kForm, blank.batch.view));
  for (std::size_t example = 0; example < 3; ++example) {
    for (const auto& [value, fits] : {std::pair{int64_t{9}, true}, {10, false}, {-1, false}}) {
      std::memcpy(blank.parts[0].data() + 8 * example, &value, sizeof(value));
      CHECK(unfit_value(kForm, blank.batch.view).has_value() != fits);
    }
    constexpr int64_t kFits = 0;
    std::memcpy(blank.parts[0].data() + 8 * example, &kFits, sizeof(kFits));
  }
  std::memset(blank.parts[1].data(), 0xff, blank.parts[1].size());
  CHECK_FALSE(unfit_value(kForm, blank.batch.view));
  auto any = kForm;
  any.parts[0].num_values = 0;
  std::memset(blank.parts[0].data(), 0xff, blank.parts[0].size());
  CHECK_FALSE(unfit_value(any, blank.batch.view));
}

}  // namespace farstep
