// What all examples of a kind look like in memory. So a site can make room for a batch that it has
// not read itself.
//
// Values and pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/data/batch_view.h"

namespace farstep {

struct ExampleForm {
  // One tensor of a batch.
  struct Part {
    DType dtype = DType::kF32;
    std::vector<int64_t> shape;  // of one example's row
    // Of kI64: values are from 0 to before this, as they index something; 0: any value.
    int64_t num_values = 0;

    std::size_t row_bytes() const;
  };

  std::vector<Part> parts;
  int64_t targets = 1;  // of one example
  std::string text;     // what the examples are, for messages: "sequences of 128 tokens"

  // Returns the bytes of one example.
  std::size_t example_bytes() const;
};

// Returns the view of a batch whose parts lie in `memory`, in the order of the form. Throws
// InternalError if a size is not that of `examples`.
BatchView view_of(const ExampleForm& form, int64_t examples,
                  std::span<const std::span<const std::byte>> memory);

// A batch that somebody fills.
struct BlankBatch {
  Batch batch;
  std::vector<std::span<std::byte>> parts;  // the batch's memory
};
BlankBatch blank_batch(const ExampleForm& form, int64_t examples);

// Returns what in a batch no such examples have: a value beyond num_values. nullopt: there is none.
std::optional<std::string> unfit_value(const ExampleForm& form, const BatchView& batch);

}  // namespace farstep
