// Times of work, and of two works in turns.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

namespace farstep {

template <typename Work>
double seconds_of(const Work& work) {
  const auto began = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

inline double median(std::vector<double> times) {
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
  return times[times.size() / 2];
}

// Median seconds of each; a first turn does not count.
struct TurnTimes {
  double own = 0, other = 0;
};
template <typename Own, typename Other>
TurnTimes take_turns(int turns, const Own& own, const Other& other) {
  std::vector<double> own_times, other_times;
  for (int turn = 0; turn <= turns; ++turn) {
    const double by_own = seconds_of(own), by_other = seconds_of(other);
    if (turn == 0) continue;
    own_times.push_back(by_own);
    other_times.push_back(by_other);
  }
  return {median(own_times), median(other_times)};
}

// The same of any number of works.
inline std::vector<double> take_turns(int turns, const std::vector<std::function<void()>>& works) {
  std::vector<std::vector<double>> times(works.size());
  for (int turn = 0; turn <= turns; ++turn) {
    for (std::size_t i = 0; i < works.size(); ++i) {
      const double seconds = seconds_of(works[i]);
      if (turn > 0) times[i].push_back(seconds);
    }
  }
  std::vector<double> medians;
  for (const auto& of_work : times) medians.push_back(median(of_work));
  return medians;
}

}  // namespace farstep
