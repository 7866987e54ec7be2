// Chooses the next window as a pure function of the run's settings and of what was trained on. So a
// resumed run continues exactly, and sites need not communicate about data.
//
// Immutable after construction; thread-safe.
#pragma once

#include <cstdint>

#include "trainer/data/data_config.h"
#include "trainer/data/examples.h"
#include "trainer/data/window_pool.h"

namespace farstep {

// A keyed permutation of [0, size) that needs no memory: a balanced Feistel network over the next
// power of four, repeated until the result is in range ("cycle walking", Black and Rogaway 2002).
// The same on every platform.
class Permutation {
 public:
  // `size` is at least 1.
  Permutation(int64_t size, uint64_t seed, uint64_t epoch);
  // Returns the image of `index`, which is in [0, size).
  int64_t operator()(int64_t index) const;

 private:
  // Twice the four rounds that make a strong pseudo-random permutation (Luby and Rackoff 1988).
  static constexpr int kRounds = 8;

  uint64_t size_;
  int half_bits_;
  uint64_t keys_[kRounds];
};

// A site's part of a round's sequences.
struct RoundRange {
  WindowPool pool = WindowPool();  // at the start of the round
  int64_t site_sequences = 0;      // planned for this site in finished rounds
  int64_t offset = 0;              // of the site's first sequence, from the round's first
  int64_t place = 0;               // of the site among the members that train in the round
  int64_t num_members = 1;
};

class Sampler {
 public:
  // Windows come from [0, num_windows).
  Sampler(DataOrder order, uint64_t seed, int64_t num_windows);

  // Returns the window of the k-th sequence of a site's range, and its epoch.
  // shuffled: the members share out what is next in the pool, of one global order. No window comes
  // twice in an epoch over all members, unless it was given back.
  // sequential: the site's j-th window of the run is j * num_members + place, modulo num_windows;
  // pool and offset are not used.
  Draw draw(const RoundRange& range, int64_t k) const;

 private:
  DataOrder order_;
  uint64_t seed_;
  int64_t num_windows_;
};

}  // namespace farstep
