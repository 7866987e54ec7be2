// How often a run is validated that says nothing of it. Pure functions; thread-safe.
#pragma once

#include <cstdint>

namespace farstep {

// The cost limit of validations if evaluate.every_rounds is null, as a share of the training
// between two of them.
inline constexpr double kValidationShare = 0.01;

// Returns whether a validation with `examples` is due after a round that took all sites from
// `examples_before` to `examples_after` training examples. The interval is the number of examples
// whose training makes the validation cost kValidationShare. A validation is due at the first
// round's end after each interval. The result depends on the arguments alone, so all sites agree.
bool is_validation_due(int64_t examples_before, int64_t examples_after, int64_t examples);

}  // namespace farstep
