// The way in which a process computes the products of each class, and attention.
//
// Before a choice, products take the first available way of product_way.h. Choosing by measurement
// takes less than a second and happens once in a process, so that every step takes the same way.
// Two processes may choose differently if two ways are about as fast. A process that must repeat
// another's bits takes its choice, or both name a way. Choose before other threads multiply;
// afterwards thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trainer/base/processor/instruction_set.h"
#include "trainer/config/json_fields.h"
#include "trainer/model/device_config.h"
#include "trainer/model/matmul/product_class.h"
#include "trainer/model/matmul/product_trial.h"
#include "trainer/model/matmul/product_way.h"
#include "trainer/model/shape/model_config.h"

namespace farstep {

template <typename T>
ProductWay chosen_way(ProductClass of);

// Returns the instructions for bf16 attention one head at a time; nullopt for matrix products.
std::optional<InstructionSet> chosen_attention();

// Chooses one way for everything. Throws a ConfigError that lists the available ways if this one is
// not available for either type of factors.
void choose_products(ProductWay way);

// Does the same for the way that a site's config names; does nothing if it names none.
void choose_named_products(CpuProducts products);

// Chooses as a site's config says, for the products of `compute`, and logs the choice. Measures
// with the calling thread's number of threads. A process that continues another one's run passes
// that one's measured_choice() as `kept`. It is used instead of a measurement, or the log says why
// not.
void choose_products(CpuProducts products, ComputeType compute, const Json* kept = nullptr);

// Does the same; only the first call in a process has an effect.
void choose_products_once(CpuProducts products, ComputeType compute, const Json* kept = nullptr);

// Returns the ways that were measured, or taken from another process, for the products of
// `compute`; null without any. Attention follows from them.
Json measured_choice(ComputeType compute);

// Chooses as `kept`, another process's measured_choice(). Throws ConfigError, and changes nothing,
// if it is null, is for another type, or has a way that this process lacks.
void take_measured_choice(const Json& kept, ComputeType compute);

// Measures the ways (product_trial.h) and chooses the best for each class. Only for products of T;
// BF16 includes attention.
template <typename T>
std::vector<ProductTrial> choose_products_by_measuring();

// Returns "amx", or also the classes that differ: "amx, mkl for small".
template <typename T>
std::string describe_choice();

}  // namespace farstep
