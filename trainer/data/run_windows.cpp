// Each example of an epoch trains one site, once. A round reserves its examples in advance, because
// all sites must know who takes which. What a site did not bring to the sync returns to the pool,
// and the next rounds take it first.
#include "trainer/data/run_windows.h"

#include <algorithm>

#include "trainer/base/error.h"

namespace farstep {

namespace {

// Gives back what follows the first `used` sequences.
void give_back_after(WindowPool& pool, const std::vector<SequenceRange>& ranges, int64_t used) {
  for (const auto& range : ranges) {
    const int64_t kept = std::min(used, range.size());
    pool.give_back({range.begin + kept, range.end});
    used -= kept;
  }
}

}  // namespace

RunWindows::RunWindows(const RunWindowsState& state)
    : pool_(state.run_sequences), reserved_(state.reserved_sequences) {
  const auto take_back = [&](WindowPool& pool, const SequenceRange& range) {
    if (range.size() == 0 || !pool.has_taken(range)) {
      throw DataError(
          fmt::format("the data's sequences {} to {} stand twice in the state, or not before {}",
                      range.begin, range.end, state.run_sequences));
    }
    pool.give_back(range);
  };
  // In a pool of its own, which the reserved ones join.
  auto all = pool_;
  for (const auto& range : state.returned_sequences) take_back(all, range);
  pool_ = all;
  for (const auto& reservation : reserved_) {
    for (const auto& range : reservation.ranges) take_back(all, range);
  }
}

RunWindowsState RunWindows::state() const {
  return {.run_sequences = pool_.next(),
          .returned_sequences = pool_.returned(),
          .reserved_sequences = reserved_};
}

void RunWindows::reserve(int64_t round, const std::string& site, int64_t steps_before,
                         int64_t batch, int64_t count) {
  reserved_.push_back({.round = round,
                       .site = site,
                       .steps_before = steps_before,
                       .batch = batch,
                       .ranges = pool_.take(count)});
}

int64_t RunWindows::reserved(int64_t round, const std::string& site) const {
  int64_t count = 0;
  for (const auto& reservation : reserved_) {
    if (reservation.round != round || reservation.site != site) continue;
    for (const auto& range : reservation.ranges) count += range.size();
  }
  return count;
}

void RunWindows::settle(int64_t round, const std::map<std::string, int64_t>& steps) {
  for (const auto& reservation : reserved_) {
    if (reservation.round != round) continue;
    const auto merged = steps.find(reservation.site);
    // Steps before the round was planned again have their own reservation.
    const int64_t used =
        merged == steps.end()
            ? 0
            : std::max<int64_t>(0, merged->second - reservation.steps_before) * reservation.batch;
    give_back_after(pool_, reservation.ranges, used);
  }
  std::erase_if(reserved_, [&](const auto& reservation) { return reservation.round <= round; });
}

// For a round that begins anew with other sites: its reservations follow a plan that no longer
// holds.
void RunWindows::withdraw(int64_t round) {
  std::erase_if(reserved_, [&](const auto& reservation) {
    if (reservation.round != round) return false;
    give_back_after(pool_, reservation.ranges, 0);
    return true;
  });
}

}  // namespace farstep
