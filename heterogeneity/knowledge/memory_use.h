// What training takes of the memory of one place, a machine or a GPU, by kind. ARCHITECTURE.md's
// table of the memory of a site has the terms.
//
// Values and pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "trainer/config/fields.h"

namespace farstep::heterogeneity {

struct MemoryUse {
  int64_t weights_bytes = 0;  // with their copy in the type of the matrix products
  int64_t gradients_bytes = 0;
  int64_t moments_bytes = 0;      // of the inner optimizer
  int64_t outer_bytes = 0;        // theta_global, its momentum, and what a sync has under way
  int64_t checkpoint_bytes = 0;   // the copy that a checkpoint is written from
  int64_t activations_bytes = 0;  // of a micro-batch
  int64_t logits_bytes = 0;       // of a micro-batch
  int64_t data_bytes = 0;         // images, which are kept in memory
  int64_t program_bytes = 0;      // the program and its libraries

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("weights_bytes", weights_bytes, "weights, with their copy in the products' type",
          at_least(0));
    visit("gradients_bytes", gradients_bytes, "gradients", at_least(0));
    visit("moments_bytes", moments_bytes, "the inner optimizer's moments", at_least(0));
    visit("outer_bytes", outer_bytes, "theta_global, its momentum, and a sync under way",
          at_least(0));
    visit("checkpoint_bytes", checkpoint_bytes, "the copy that a checkpoint is written from",
          at_least(0));
    visit("activations_bytes", activations_bytes, "what a micro-batch keeps for backward",
          at_least(0));
    visit("logits_bytes", logits_bytes, "logits of a micro-batch, and their gradients",
          at_least(0));
    visit("data_bytes", data_bytes, "images, which are kept in memory", at_least(0));
    visit("program_bytes", program_bytes, "the program and its libraries", at_least(0));
  }

  int64_t total() const;
  MemoryUse& operator+=(const MemoryUse& other);
  bool operator==(const MemoryUse&) const = default;
};

// Returns "2.50 GB: weights 600.00 MB, gradients 600.00 MB, ...", without kinds that take nothing.
std::string text_of(const MemoryUse& use);

}  // namespace farstep::heterogeneity
