// Chooses the next window as a pure function of the run's settings and of what was trained on. So a
// resumed run continues exactly, and sites need not communicate about data.
//
// Immutable after construction; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/data/data_config.h"
#include "trainer/data/examples.h"
#include "trainer/data/mixture.h"
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
  // Windows come from several sources, which have their numbers one after the other. There is one
  // source, or the order is shuffled.
  Sampler(DataOrder order, uint64_t seed, std::span<const SourceShare> sources);

  // Returns the window of the k-th sequence of a site's range, and its epoch.
  // shuffled: the members share out what is next in the pool, of one global order. No window comes
  // twice in an epoch over all members, unless it was given back.
  // With several sources an epoch has as many windows as all of them, and of each source its share.
  // After any number of epochs all windows of a source have come equally often, or some once more.
  // The epoch of the result is the number of the pass over its source.
  // sequential: the site's j-th window of the run is j * num_members + place, modulo num_windows;
  // pool and offset are not used.
  Draw draw(const RoundRange& range, int64_t k) const;

 private:
  // One of several sources.
  struct Part {
    int64_t first = 0, windows = 0;   // its numbers
    int64_t begin = 0, in_epoch = 0;  // its places in an epoch, before they are shuffled
    uint64_t seed = 0;
  };

  Draw draw_of_part(int64_t place, int64_t epoch) const;

  DataOrder order_;
  uint64_t seed_;
  int64_t num_windows_;
  std::vector<Part> parts_;  // empty if there is one source
};

}  // namespace farstep
