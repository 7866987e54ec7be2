#include "trainer/model/matmul/product_choice.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "tests/support/catch.h"
#include "tests/support/log_capture.h"
#include "trainer/base/error.h"
#include "trainer/kernels/products/head_attention.h"
#include "trainer/model/matmul/matrix_product.h"

namespace farstep {

namespace {

ProductClass class_at(int i) {
  return static_cast<ProductClass>(i);
}

template <typename T>
constexpr ComputeType kComputeOf = sizeof(T) == sizeof(float) ? ComputeType::kFP32
                                                              : ComputeType::kBF16;

// As a checkpoint would keep it; the ways that can be had for factors of T in turns.
template <typename T>
Json mixed_choice() {
  const auto ways = ways_to_multiply<T>();
  Json kept{{"compute", name_of(kComputeOf<T>)}, {"ways", Json::array()}};
  for (std::size_t i = 0; i < kProductClasses; ++i) {
    kept["ways"].push_back(name_of(ways[i % ways.size()]));
  }
  return kept;
}

}  // namespace

TEST_CASE("products are told apart by layout and size") {
  constexpr int64_t kLarge = 1024;
  CHECK(class_of(kLarge, kLarge, kLarge, false, true) == ProductClass::kForward);
  CHECK(class_of(kLarge, kLarge, kLarge, false, false) == ProductClass::kInputGradient);
  CHECK(class_of(kLarge, kLarge, kLarge, true, false) == ProductClass::kWeightGradient);
  CHECK(class_of(128, 512, 64, false, true) == ProductClass::kSmall);
  CHECK(class_of(1, 1, 1, true, false) == ProductClass::kSmall);
}

TEMPLATE_TEST_CASE("measuring chooses for each class a way that can be had and was not beaten", "",
                   float, BF16) {
  const auto trials = choose_products_by_measuring<TestType>();
  REQUIRE(trials.size() == kProductClasses);
  for (const auto& trial : trials) {
    const auto way = chosen_way<TestType>(trial.of);
    INFO(name_of(way));
    CHECK(can_multiply_by<TestType>(way));
    double best = HUGE_VAL, own = HUGE_VAL;
    for (const auto& time : trial.times) {
      if (!time.seconds) continue;
      CHECK(*time.seconds > 0);
      best = std::min(best, *time.seconds);
      if (time.way == way) own = *time.seconds;
    }
    CHECK(own <= 1.05 * best);
  }
  CHECK_FALSE(describe_choice<TestType>().empty());
}

TEST_CASE("a way that is named is taken for every product, and for attention where it has one") {
  for (int i = 0; i < kProductWays; ++i) {
    const auto way = static_cast<ProductWay>(i);
    INFO(name_of(way));
    if (!can_multiply_by<BF16>(way)) {
      if (!can_multiply_by<float>(way)) {
        CHECK_THROWS_AS(choose_products(way), ConfigError);
      }
      continue;
    }
    choose_products(way);
    for (int j = 0; j < kProductClasses; ++j) CHECK(chosen_way<BF16>(class_at(j)) == way);
    CHECK(describe_choice<BF16>() == name_of(way));
    const auto attention = chosen_attention();
    CHECK(attention.has_value() == (way == ProductWay::kAmx || way == ProductWay::kAvx512Bf16));
    if (attention) CHECK(attends_heads_by(*attention));

    const auto a = at::randn({40, 30}).to(at::kBFloat16), b = at::randn({30, 20}).to(at::kBFloat16);
    auto c = at::empty({40, 20}, at::kFloat);
    multiply(40, 20, 30, {static_cast<const BF16*>(a.const_data_ptr()), 30},
             {static_cast<const BF16*>(b.const_data_ptr()), 20}, {c.mutable_data_ptr<float>(), 20});
    CHECK(at::allclose(c, at::mm(a.to(at::kFloat), b.to(at::kFloat)), 1e-4, 1e-4));
  }
}

TEMPLATE_TEST_CASE("a measured choice is kept and taken again", "", float, BF16) {
  constexpr auto kCompute = kComputeOf<TestType>;
  choose_products_by_measuring<TestType>();
  const auto measured = measured_choice(kCompute);
  choose_products(ProductWay::kLibTorch);
  CHECK(measured_choice(kCompute).is_null());  // nothing was measured of this one
  for (const auto& kept : {measured, mixed_choice<TestType>()}) {
    take_measured_choice(Json::parse(kept.dump()), kCompute);
    CHECK(measured_choice(kCompute) == kept);
    for (int i = 0; i < kProductClasses; ++i) {
      CHECK(kept["ways"][static_cast<std::size_t>(i)] ==
            name_of(chosen_way<TestType>(class_at(i))));
    }
  }
}

TEST_CASE("a choice that this process cannot take is refused and changes nothing") {
  const auto before = mixed_choice<float>();
  take_measured_choice(before, ComputeType::kFP32);
  const auto refused = [&](const char* member, const Json& value, const char* why) {
    auto kept = before;
    kept[member] = value;
    CHECK_THROWS_WITH(take_measured_choice(kept, ComputeType::kFP32), Catch::Contains(why));
    CHECK(measured_choice(ComputeType::kFP32) == before);
  };
  refused("compute", "bf16", "has those for bf16, and the run computes in fp32");
  refused("ways", {"libtorch", "libtorch", "libtorch", "amx"}, "no way 'amx'");  // of bf16 alone
  refused("ways", {"libtorch", "libtorch", "libtorch", "abacus"}, "abacus");
  refused("ways", {"libtorch", "libtorch", "libtorch"}, "has 3 entries");
  CHECK_THROWS_AS(take_measured_choice(Json(), ComputeType::kFP32), ConfigError);
  CHECK(measured_choice(ComputeType::kFP32) == before);
}

TEST_CASE("a resumed process takes what was kept, or measures and says why") {
  const auto kept = mixed_choice<float>();
  {
    const LogCapture log;
    choose_products(CpuProducts::kMeasure, ComputeType::kFP32, &kept);
    CHECK(measured_choice(ComputeType::kFP32) == kept);
    CHECK_THAT(log.text(), Catch::Contains("as the checkpoint says") && !Catch::Contains("anew"));
  }
  choose_products(ProductWay::kLibTorch);
  {
    const LogCapture log;
    const Json none;
    choose_products(CpuProducts::kMeasure, ComputeType::kFP32, &none);
    CHECK_FALSE(measured_choice(ComputeType::kFP32).is_null());
    CHECK_THAT(log.text(), Catch::Contains("measured again, so bits may differ") &&
                               Catch::Contains("does not say how they were made"));
  }
  {
    const LogCapture log;
    choose_products(CpuProducts::kMeasure, ComputeType::kFP32);
    CHECK_THAT(log.text(), !Catch::Contains("anew"));  // of a run that begins
  }
}

TEST_CASE("a way that the config names comes before the one that was kept") {
  const auto kept = mixed_choice<float>();
  choose_products(CpuProducts::kLibTorch, ComputeType::kFP32, &kept);
  for (int i = 0; i < kProductClasses; ++i) {
    CHECK(chosen_way<float>(class_at(i)) == ProductWay::kLibTorch);
  }
  CHECK(measured_choice(ComputeType::kFP32).is_null());
}

}  // namespace farstep
