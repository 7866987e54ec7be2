#include "trainer/data/pieces/merges.h"

#include <algorithm>
#include <limits>
#include <queue>

namespace farstep {

namespace {

// Up to here, looking at all ranks for the lowest is faster than a queue.
constexpr std::size_t kShort = 32;
constexpr int32_t kNoRank = std::numeric_limits<int32_t>::max();

}  // namespace

void Merges::apply(std::vector<int32_t>& symbols) const {
  if (symbols.size() <= kShort) {
    apply_to_short(symbols);
  } else {
    apply_to_long(symbols);
  }
}

void Merges::apply_to_short(std::vector<int32_t>& symbols) const {
  if (symbols.size() < 2) return;
  // Of each symbol with its right neighbour.
  PairTable::Merge merges[kShort];
  const auto look_up = [&](std::size_t place) {
    const auto* const merge = table_.find(symbols[place], symbols[place + 1]);
    merges[place] = merge == nullptr ? PairTable::Merge{kNoRank, 0} : *merge;
  };
  std::size_t pairs = symbols.size() - 1;
  for (std::size_t i = 0; i < pairs; ++i) look_up(i);
  while (pairs > 0) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < pairs; ++i) {
      if (merges[i].rank < merges[best].rank) best = i;
    }
    if (merges[best].rank == kNoRank) break;
    symbols[best] = merges[best].merged;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    std::copy(merges + best + 1, merges + pairs, merges + best);
    --pairs;
    if (best < pairs) look_up(best);
    if (best > 0) look_up(best - 1);
  }
}

// A list of the symbols and a queue of the merges. A merge in the queue may be outdated: one of its
// symbols was merged with another. Then the pair at its place has another merge, or none.
void Merges::apply_to_long(std::vector<int32_t>& symbols) const {
  struct Link {
    int32_t previous, next;  // -1 is none
  };
  struct Candidate {
    int32_t rank, place, merged;
    bool operator<(const Candidate& other) const {  // the lowest rank is the top of the queue
      return rank != other.rank ? rank > other.rank : place > other.place;
    }
  };
  constexpr int32_t kGone = -1;
  const auto count = static_cast<int32_t>(symbols.size());
  std::vector<Link> links(symbols.size());
  std::vector<Candidate> found;
  const auto symbol = [&](int32_t place) -> int32_t& {
    return symbols[static_cast<std::size_t>(place)];
  };
  const auto link = [&](int32_t place) -> Link& { return links[static_cast<std::size_t>(place)]; };
  const auto merge_at = [&](int32_t place) {
    const int32_t next = link(place).next;
    return next < 0 ? nullptr : table_.find(symbol(place), symbol(next));
  };
  for (int32_t i = 0; i < count; ++i) link(i) = {i - 1, i + 1 < count ? i + 1 : -1};
  for (int32_t i = 0; i < count; ++i) {
    if (const auto* const merge = merge_at(i)) found.push_back({merge->rank, i, merge->merged});
  }
  std::priority_queue<Candidate> queue({}, std::move(found));
  const auto add = [&](int32_t place) {
    if (place < 0) return;
    if (const auto* const merge = merge_at(place)) queue.push({merge->rank, place, merge->merged});
  };
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    if (symbol(top.place) == kGone) continue;
    const auto* const merge = merge_at(top.place);
    if (merge == nullptr || merge->rank != top.rank || merge->merged != top.merged) continue;
    const int32_t right = link(top.place).next;
    symbol(top.place) = top.merged;
    symbol(right) = kGone;
    link(top.place).next = link(right).next;
    if (link(right).next >= 0) link(link(right).next).previous = top.place;
    add(link(top.place).previous);
    add(top.place);
  }
  symbols.erase(std::remove(symbols.begin(), symbols.end(), kGone), symbols.end());
}

}  // namespace farstep
