// A site's part of a validation of the common model, as every other site gets to know it. Values.
#pragma once

#include <cstdint>

#include "trainer/config/fields.h"

namespace farstep::heterogeneity {

struct PartialValidation {
  int64_t round = 0;
  double loss_sum = 0;
  int64_t targets = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("round", round, "rounds that theta_global had done", required(in_range(0, 1e15)));
    visit("loss_sum", loss_sum, "sum of the losses of the site's part", kRequired);
    visit("targets", targets, "its targets", required(in_range(0, 1e15)));
  }
  bool operator==(const PartialValidation&) const = default;
};

}  // namespace farstep::heterogeneity
