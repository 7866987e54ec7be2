// What is next in the epoch's order: ranges that were given back, lowest first, then everything
// that nobody has taken yet.
#include "trainer/data/window_pool.h"

#include <algorithm>
#include <iterator>

#include "trainer/base/error.h"

namespace farstep {

int64_t WindowPool::at(int64_t k) const {
  for (const auto& range : returned_) {
    if (k < range.size()) return range.begin + k;
    k -= range.size();
  }
  return next_ + k;
}

std::vector<SequenceRange> WindowPool::take(int64_t count) {
  FARSTEP_CHECK(count >= 0, "{} sequences", count);
  std::vector<SequenceRange> taken;
  while (count > 0 && !returned_.empty()) {
    auto& first = returned_.front();
    const int64_t size = std::min(count, first.size());
    taken.push_back({first.begin, first.begin + size});
    first.begin += size;
    count -= size;
    if (first.size() == 0) returned_.erase(returned_.begin());
  }
  if (count > 0) {
    taken.push_back({next_, next_ + count});
    next_ += count;
  }
  return taken;
}

// Neighbours become one range, and the last ones join what nobody has taken. So their number does
// not grow with the rounds.
void WindowPool::give_back(const SequenceRange& range) {
  if (range.size() == 0) return;
  // A window given back twice would be trained on twice.
  FARSTEP_CHECK(has_taken(range), "sequences {} to {} are given back, but were not taken",
                range.begin, range.end);
  auto after = std::ranges::lower_bound(returned_, range.begin, {}, &SequenceRange::begin);
  auto place = returned_.insert(after, range);
  if (const auto right = std::next(place); right != returned_.end() && right->begin == place->end) {
    place->end = right->end;
    returned_.erase(right);
  }
  if (place != returned_.begin() && std::prev(place)->end == place->begin) {
    std::prev(place)->end = place->end;
    returned_.erase(place);
  }
  if (returned_.back().end == next_) {
    next_ = returned_.back().begin;
    returned_.pop_back();
  }
}

// A range was taken if it lies before next_ and no part of it has come back.
bool WindowPool::has_taken(const SequenceRange& range) const {
  if (range.begin < 0 || range.begin > range.end || range.end > next_) return false;
  return std::ranges::none_of(returned_, [&](const auto& other) {
    return std::max(range.begin, other.begin) < std::min(range.end, other.end);
  });
}

}  // namespace farstep
