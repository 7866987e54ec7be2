// The properties of one direction of a way through the internet: rate, delay, loss and queue.
//
// A config struct: it can be read from JSON, printed, and listed in help.
#pragma once

#include "trainer/config/fields.h"

namespace farstep::wan {

inline constexpr double kBitsPerByte = 8;

struct LinkShape {
  double rate_bits_per_second = 1e9;
  double delay_seconds = 0;
  double loss = 0;
  double queue_seconds = 0.1;
  bool is_cut = false;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("rate_bits_per_second", rate_bits_per_second, "bits that pass in a second",
          required(above(0)));
    visit("delay_seconds", delay_seconds, "from leaving one end to arriving at the other, one way",
          at_least(0));
    visit("loss", loss, "share of the packets that get lost on the way", in_range(0, 1));
    visit("queue_seconds", queue_seconds,
          "longest wait for a turn at the rate; who would wait longer is dropped", at_least(0));
    visit("is_cut", is_cut, "nothing passes");
  }

  bool operator==(const LinkShape&) const = default;
};

}  // namespace farstep::wan
