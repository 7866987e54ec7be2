// Threads as ranks: runs a function once a rank, all at the same time.
#pragma once

#include <future>
#include <type_traits>
#include <vector>

namespace farstep::wan {

// Results of fn(0) .. fn(n - 1), each run on a thread of its own. Waits for all of them, then
// rethrows the exception of the lowest rank that threw. Catch2's assertions are not thread-safe:
// return what is to be checked.
template <typename Function>
auto run_ranks(int n, Function fn) {
  using Result = std::invoke_result_t<Function, int>;
  std::vector<std::future<Result>> pending;
  for (int rank = 0; rank < n; ++rank) {
    pending.push_back(std::async(std::launch::async, fn, rank));
  }
  for (auto& future : pending) future.wait();
  if constexpr (std::is_void_v<Result>) {
    for (auto& future : pending) future.get();
  } else {
    std::vector<Result> results;
    for (auto& future : pending) results.push_back(future.get());
    return results;
  }
}

}  // namespace farstep::wan
