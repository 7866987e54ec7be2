// Measures the ways of a matrix product, class by class.
#pragma once

#include <optional>
#include <vector>

#include "trainer/model/matmul/product_class.h"
#include "trainer/model/matmul/product_way.h"

namespace farstep {

// Seconds of a way; empty if it was dropped because another is far faster.
struct WayTime {
  ProductWay way;
  std::optional<double> seconds;
};
struct ProductTrial {
  ProductClass of;
  double operations = 0;
  std::vector<WayTime> times;
};

// Returns the available ways for factors of T, in order of preference; there is at least one.
template <typename T>
std::vector<ProductWay> ways_to_multiply();

// Measures all available ways for factors of T, with the calling thread's number of threads.
template <typename T>
ProductTrial try_ways(ProductClass of);

// Returns the fastest way, or an earlier one in the order that takes at most 5 % longer.
ProductWay best_of(const ProductTrial& trial);

}  // namespace farstep
