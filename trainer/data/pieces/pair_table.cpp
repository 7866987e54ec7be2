#include "trainer/data/pieces/pair_table.h"

#include <utility>

namespace farstep {

namespace {
constexpr std::size_t kFirstSlots = 64;
}

PairTable::PairTable() : slots_(kFirstSlots), mask_(kFirstSlots - 1) {}

void PairTable::set(int32_t left, int32_t right, Merge merge) {
  if (2 * (used_ + 1) > slots_.size()) grow();
  const uint64_t key = key_of(left, right);
  std::size_t slot = slot_of(key);
  while (slots_[slot].key != kFree && slots_[slot].key != key) slot = (slot + 1) & mask_;
  if (slots_[slot].key == kFree) ++used_;
  slots_[slot] = {key, merge};
}

void PairTable::grow() {
  auto old = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
  mask_ = slots_.size() - 1;
  for (const auto& moved : old) {
    if (moved.key == kFree) continue;
    std::size_t slot = slot_of(moved.key);
    while (slots_[slot].key != kFree) slot = (slot + 1) & mask_;
    slots_[slot] = moved;
  }
}

}  // namespace farstep
