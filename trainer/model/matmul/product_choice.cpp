// No table of processors says which way is fastest: that depends on caches, clocks and the
// libraries. So the ways are timed at start, for each class of products. The choice is kept in
// checkpoints, because other ways add up in another order.
#include "trainer/model/matmul/product_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>

#include "trainer/base/error.h"
#include "trainer/kernels/products/head_attention.h"

namespace farstep {

namespace {

constexpr uint8_t kNotChosen = 0xff;

// The ways of one type's products. Atomic, because all devices' threads read them, and a first use
// may set them.
struct Choice {
  std::array<std::atomic<uint8_t>, kProductClasses> ways{kNotChosen, kNotChosen, kNotChosen,
                                                         kNotChosen};
  std::atomic<bool> is_measured = false;
};

template <typename T>
Choice& choice_of() {
  static Choice of_type;
  return of_type;
}

template <typename T>
void set_way(ProductClass of, ProductWay way) {
  choice_of<T>().ways[static_cast<std::size_t>(of)] = static_cast<uint8_t>(way);
}

// The form in checkpoints.
struct MeasuredChoice {
  ComputeType compute = ComputeType::kFP32;
  std::vector<ProductWay> ways;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("compute", compute, "type of the run's products", kRequired);
    visit("ways", ways, "of the classes, in their order",
          required(in_range(kProductClasses, kProductClasses)));
  }
};

// Returns the reason if bf16 is multiplied as fp32, else an empty text.
std::string_view remark_on(ComputeType compute) {
  if (compute == ComputeType::kFP32 || chosen_attention()) return "";
  return "; bf16 is converted to fp32, as this processor multiplies it no faster";
}

std::string rates_of(const ProductTrial& trial) {
  std::string text;
  for (const auto& [way, seconds] : trial.times) {
    text += fmt::format(", {} {}", name_of(way),
                        seconds ? fmt::format("{:.3g}", trial.operations / *seconds * 1e-12) : "-");
  }
  return text.substr(2);
}

template <typename T>
void measure_and_log() {
  for (const auto& trial : choose_products_by_measuring<T>()) {
    spdlog::debug("products, {}, TFLOPS: {}",
                  enum_names(trial.of)[static_cast<std::size_t>(trial.of)], rates_of(trial));
  }
}

template <typename T>
bool choose_if_possible(ProductWay way) {
  if (!can_multiply_by<T>(way)) return false;
  for (int i = 0; i < kProductClasses; ++i) set_way<T>(static_cast<ProductClass>(i), way);
  choice_of<T>().is_measured = false;
  return true;
}

// Only a measured choice is kept in checkpoints: a named one comes from the config again.
template <typename T>
std::optional<std::vector<ProductWay>> measured_ways() {
  if (!choice_of<T>().is_measured) return std::nullopt;
  std::vector<ProductWay> ways;
  for (const auto& way : choice_of<T>().ways) ways.push_back(static_cast<ProductWay>(way.load()));
  return ways;
}

template <typename T>
void take_ways(const std::vector<ProductWay>& ways) {
  for (const auto way : ways) {
    if (can_multiply_by<T>(way)) continue;
    throw ConfigError(fmt::format("this process has no way '{}'", name_of(way)));
  }
  for (int i = 0; i < kProductClasses; ++i) {
    set_way<T>(static_cast<ProductClass>(i), ways[static_cast<std::size_t>(i)]);
  }
  choice_of<T>().is_measured = true;
}

// Takes the kept choice; returns whether that was possible. Measured times differ between
// processes. A resumed run that chose other ways would compute other bits.
bool goes_on_with(const Json& kept, ComputeType compute) {
  try {
    take_measured_choice(kept, compute);
    return true;
  } catch (const ConfigError& error) {
    spdlog::warn(
        "matrix products are measured again, so bits may differ from those of a run that was not "
        "interrupted: {}",
        error.what());
    return false;
  }
}

}  // namespace

template <typename T>
ProductWay chosen_way(ProductClass of) {
  auto& chosen = choice_of<T>().ways[static_cast<std::size_t>(of)];
  const uint8_t way = chosen.load(std::memory_order_relaxed);
  if (way != kNotChosen) return static_cast<ProductWay>(way);
  // Programs that choose nothing, such as tests, take the preferred way.
  const auto first = ways_to_multiply<T>().front();
  chosen.store(static_cast<uint8_t>(first), std::memory_order_relaxed);
  return first;
}

std::optional<InstructionSet> chosen_attention() {
  // Follows the forward products: they take most of the time, and attention uses the same
  // instructions.
  const auto way = chosen_way<BF16>(ProductClass::kForward);
  if (way == ProductWay::kAmx) return InstructionSet::kAmx;
  if (way == ProductWay::kAvx512Bf16) return InstructionSet::kAvx512Bf16;
  return std::nullopt;
}

void choose_products(ProductWay way) {
  const bool for_bf16 = choose_if_possible<BF16>(way);
  if (choose_if_possible<float>(way) || for_bf16) return;
  std::vector<std::string_view> names;
  for (const auto other : ways_to_multiply<BF16>()) names.push_back(name_of(other));
  throw ConfigError(fmt::format("cpu.products: this process has no way '{}'; it has {}",
                                name_of(way), fmt::join(names, ", ")));
}

void choose_named_products(CpuProducts products) {
  const auto name = enum_names(products)[static_cast<std::size_t>(products)];
  const auto ways = enum_names(ProductWay{});
  const auto way = std::ranges::find(ways, name);
  if (way != ways.end()) choose_products(static_cast<ProductWay>(way - ways.begin()));
}

// A named way takes precedence; a kept choice comes before a measurement.
void choose_products(CpuProducts products, ComputeType compute, const Json* kept) {
  const bool is_fp32 = compute == ComputeType::kFP32;
  choose_named_products(products);
  const bool is_free = products == CpuProducts::kMeasure;
  const bool goes_on = is_free && kept && goes_on_with(*kept, compute);
  if (is_free && !goes_on) is_fp32 ? measure_and_log<float>() : measure_and_log<BF16>();
  spdlog::info("matrix products: {}{}{}",
               is_fp32 ? describe_choice<float>() : describe_choice<BF16>(),
               goes_on ? ", as the checkpoint says" : "", remark_on(compute));
}

void choose_products_once(CpuProducts products, ComputeType compute, const Json* kept) {
  // All devices of the process share one choice; two measurements could differ.
  static std::once_flag once;
  std::call_once(once, [&] { choose_products(products, compute, kept); });
}

Json measured_choice(ComputeType compute) {
  const auto ways = compute == ComputeType::kFP32 ? measured_ways<float>() : measured_ways<BF16>();
  return ways ? to_json(MeasuredChoice{compute, *ways}) : Json();
}

void take_measured_choice(const Json& kept, ComputeType compute) {
  if (kept.is_null()) throw ConfigError("the checkpoint does not say how they were made");
  const auto choice = read_json<MeasuredChoice>(kept, "the checkpoint's products");
  if (choice.compute != compute) {
    throw ConfigError(fmt::format("the checkpoint has those for {}, and the run computes in {}",
                                  name_of(choice.compute), name_of(compute)));
  }
  compute == ComputeType::kFP32 ? take_ways<float>(choice.ways) : take_ways<BF16>(choice.ways);
}

template <typename T>
std::vector<ProductTrial> choose_products_by_measuring() {
  std::vector<ProductTrial> trials;
  for (int i = 0; i < kProductClasses; ++i) {
    const auto of = static_cast<ProductClass>(i);
    trials.push_back(try_ways<T>(of));
    set_way<T>(of, best_of(trials.back()));
  }
  choice_of<T>().is_measured = true;
  return trials;
}

template <typename T>
std::string describe_choice() {
  const auto forward = chosen_way<T>(ProductClass::kForward);
  std::string text(name_of(forward));
  for (int i = 1; i < kProductClasses; ++i) {
    const auto of = static_cast<ProductClass>(i);
    const auto way = chosen_way<T>(of);
    if (way == forward) continue;
    text += fmt::format(", {} for {}", name_of(way), enum_names(of)[static_cast<std::size_t>(i)]);
  }
  return text;
}

template ProductWay chosen_way<float>(ProductClass);
template ProductWay chosen_way<BF16>(ProductClass);
template std::vector<ProductTrial> choose_products_by_measuring<float>();
template std::vector<ProductTrial> choose_products_by_measuring<BF16>();
template std::string describe_choice<float>();
template std::string describe_choice<BF16>();

}  // namespace farstep
