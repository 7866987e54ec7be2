// Which window is the next? A pure function of the run's recipe and of two integers, so that a
// resumed run goes on where it stopped and no two sites need to talk about it.
//
// Thread-safe: nothing changes after construction.
#pragma once

#include <cstdint>

#include "trainer/config/run_config.h"

namespace farstep {

// Where the data order stands between two rounds.
struct DataPosition {
  int64_t run_sequences = 0;   // taken by all sites in finished rounds
  int64_t site_sequences = 0;  // taken by this site in finished rounds
};

// A keyed bijection on [0, size) that needs no memory: a balanced Feistel network over the next
// power of four, walked until it lands inside. The same on every platform.
class Permutation {
 public:
  // `size` is at least 1.
  Permutation(int64_t size, uint64_t seed, uint64_t epoch);
  // Image of `index`, which is in [0, size).
  int64_t operator()(int64_t index) const;

 private:
  static constexpr int kRounds = 8;

  uint64_t size_;
  int half_bits_;
  uint64_t keys_[kRounds];
};

class Sampler {
 public:
  // Site `site_id` of `num_sites` takes windows from [0, num_windows).
  Sampler(DataOrder order, uint64_t seed, int64_t num_windows, int site_id, int num_sites);

  // Window of the site's k-th sequence in the round that starts at `round_start`.
  // shuffled: the round's sites share out one range of a global order; this site's part begins
  // `offset_in_round` after its start. No window comes twice in an epoch over all sites.
  // sequential: the site's j-th window of the run is j * num_sites + site_id, modulo num_windows;
  // `offset_in_round` is not used.
  int64_t window(const DataPosition& round_start, int64_t offset_in_round, int64_t k) const;

 private:
  DataOrder order_;
  uint64_t seed_;
  int64_t num_windows_;
  int site_id_, num_sites_;
};

}  // namespace farstep
