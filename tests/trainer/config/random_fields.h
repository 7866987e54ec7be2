// A visitor that gives every field of a config a random value that its rules allow.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>

#include "trainer/config/fields.h"

namespace farstep {

class RandomFields {
 public:
  // With `full`, every optional has a value and every vector an element.
  RandomFields(unsigned seed, bool full) : random_(seed), full_(full) {}

  template <typename T>
  void operator()(const char* /*name*/, T& value, const char* /*doc*/, const Rules& rules = {}) {
    fill(value, rules);
  }

 private:
  int64_t whole(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }

  template <typename T>
  void fill(T& value, const Rules& rules) {
    if constexpr (HasFields<T>) {
      value.fields(*this);
    } else if constexpr (OptionalField<T>) {
      value.reset();
      if (full_ || whole(0, 1) == 1) fill(value.emplace(), rules);
    } else if constexpr (VectorField<T>) {
      const auto least = std::isfinite(rules.least) ? int64_t(rules.least) : 0;
      value.resize(std::size_t(whole(std::max<int64_t>(least, full_ ? 1 : 0), least + 3)));
      for (auto& element : value) fill(element, Rules{});
    } else if constexpr (NamedEnum<T>) {
      value = static_cast<T>(whole(0, int64_t(enum_names(value).size()) - 1));
    } else if constexpr (std::is_same_v<T, bool>) {
      value = whole(0, 1) == 1;
    } else if constexpr (std::is_same_v<T, std::string>) {
      value.clear();
      for (int64_t length = whole(rules.required ? 1 : 0, 8); length > 0; --length) {
        value += std::vector<std::string>{"a", "Z", "0", "\"", "\\", "\n", "\xC3\xA9", "."}.at(
            std::size_t(whole(0, 7)));
      }
    } else if constexpr (std::is_same_v<T, int64_t>) {
      const double low = std::max(rules.least, -1e15), high = std::min(rules.most, 1e15);
      value = whole(int64_t(std::ceil(low)) + (rules.above_least ? 1 : 0), int64_t(high));
    } else {
      const double low = std::max(rules.least, -1e15), high = std::min(rules.most, 1e15);
      do {
        value = low + (high - low) * std::pow(std::generate_canonical<double, 53>(random_), 8);
      } while (!rules.allow(value));
    }
  }

  std::mt19937_64 random_;
  bool full_;
};

}  // namespace farstep
