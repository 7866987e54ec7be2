// The figures of a site's steps against the rounds of the run, in bounded memory: of many steps it
// keeps means of neighbouring ones.
//
// A value; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "trainer/telemetry/event.h"

namespace farstep {

// A step with a loss, or the means of neighbouring ones.
struct StepPoint {
  double rounds = 0;  // done
  double loss = 0;
  double gradient_norm = 0, learning_rate = 0;  // not a number where a step has none
};

class StepCurve {
 public:
  // Counts the next record that counts.
  void add(const Record& record);

  // Returns a point for each step with a loss, or the means of equal numbers of neighbouring steps
  // if there are more than kMostPoints; the last may have fewer. By rounds instead of steps: sites
  // take different numbers of steps, and a round ends for all at once.
  std::vector<StepPoint> points() const;
  static constexpr std::size_t kMostPoints = 4000;

 private:
  struct Step {
    int64_t round = 0, step = 0;
    StepPoint point;  // without its place
  };
  struct Sum {
    StepPoint point;
    int64_t steps = 0;
  };

  // Adds the first `count` open steps to the sums.
  void close(std::size_t count);

  std::map<int64_t, int64_t> steps_of_round_;  // of rounds that may have open steps
  std::deque<Step> open_;                      // of rounds that have not ended
  std::vector<Sum> sums_;                      // of group_ steps each, but for the last
  int64_t group_ = 1;
};

}  // namespace farstep
