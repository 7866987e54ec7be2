// A table from pairs of symbols to what their merge makes.
//
// A const PairTable is thread-safe.
#pragma once

#include <cstdint>
#include <vector>

namespace farstep {

class PairTable {
 public:
  struct Merge {
    int32_t rank = 0;    // the lowest one is made first
    int32_t merged = 0;  // the symbol that it makes
  };

  PairTable();
  // Sets the merge of two symbols, each 0 or above.
  void set(int32_t left, int32_t right, Merge merge);
  // Returns the merge of two symbols, or nullptr.
  const Merge* find(int32_t left, int32_t right) const {
    const uint64_t key = key_of(left, right);
    for (std::size_t slot = slot_of(key);; slot = (slot + 1) & mask_) {
      if (slots_[slot].key == key) return &slots_[slot].merge;
      if (slots_[slot].key == kFree) return nullptr;
    }
  }
  bool empty() const { return used_ == 0; }

 private:
  static constexpr uint64_t kFree = ~uint64_t{0};
  struct Slot {
    uint64_t key = kFree;
    Merge merge;
  };

  static uint64_t key_of(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  std::size_t slot_of(uint64_t key) const {
    // The high bits of the product depend on all bits of the key.
    return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15u) >> 32) & mask_;
  }
  void grow();

  std::vector<Slot> slots_;  // a power of two of them, at most half of them used
  std::size_t mask_, used_ = 0;
};

}  // namespace farstep
