#include "trainer/data/sampler.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "trainer/base/error.h"
#include "trainer/base/mix.h"

namespace farstep {

// By a formula instead of a shuffled list, which would need eight bytes for each window at each
// site. Any site can ask for any place of the order, also of an epoch that is over.
Permutation::Permutation(int64_t size, uint64_t seed, uint64_t epoch)
    : size_(static_cast<uint64_t>(size)) {
  FARSTEP_CHECK(size >= 1, "permutation of {} elements", size);
  // At least one bit in each half, and 4^half_bits >= size: so a walk takes four steps on average
  // at most.
  half_bits_ = std::max(1, static_cast<int>(std::bit_width(size_ - 1) + 1) / 2);
  // A key for each epoch: every epoch has another order, and all sites the same.
  uint64_t key = mix(mix(seed) ^ epoch);
  for (auto& round_key : keys_) round_key = key = mix(key);
}

// Eight Feistel rounds permute the next power of four: each round can be undone, whatever the
// mixing function is, so no two indices meet. A value beyond size_ is permuted again until it is
// inside (cycle walking).
int64_t Permutation::operator()(int64_t index) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  auto value = static_cast<uint64_t>(index);
  do {
    uint64_t left = value >> half_bits_;
    uint64_t right = value & mask;
    for (const uint64_t key : keys_) {
      const uint64_t next = left ^ (mix(right ^ key) & mask);
      left = right;
      right = next;
    }
    value = (left << half_bits_) | right;
  } while (value >= size_);
  return static_cast<int64_t>(value);
}

Sampler::Sampler(DataOrder order, uint64_t seed, int64_t num_windows)
    : order_(order), seed_(seed), num_windows_(num_windows) {
  FARSTEP_CHECK(num_windows >= 1, "{} windows", num_windows);
}

Sampler::Sampler(DataOrder order, uint64_t seed, std::span<const SourceShare> sources)
    : order_(order), seed_(seed), num_windows_(0) {
  for (const auto& source : sources) num_windows_ += source.size;
  FARSTEP_CHECK(num_windows_ >= 1, "{} windows", num_windows_);
  if (sources.size() == 1) return;
  FARSTEP_CHECK(order == DataOrder::kShuffled, "{} sources in sequential order", sources.size());
  const auto shares = shares_of(num_windows_, sources);
  Part part;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    part.windows = sources[i].size;
    part.in_epoch = shares[i];
    part.seed = mix(seed ^ mix(i + 1));  // two sources of one size have different orders
    parts_.push_back(part);
    part.first += part.windows;
    part.begin += part.in_epoch;
  }
}

// The places of a source in one epoch are the next of its own endless order. So a source whose
// share is larger than it is comes again within an epoch, and one whose share is smaller goes on in
// the next epoch where it was.
Draw Sampler::draw_of_part(int64_t place, int64_t epoch) const {
  const auto after = std::ranges::upper_bound(parts_, place, {}, &Part::begin);
  const auto& part = *std::prev(after);
  const int64_t index = epoch * part.in_epoch + (place - part.begin);
  const int64_t pass = index / part.windows;
  const Permutation order(part.windows, part.seed, static_cast<uint64_t>(pass));
  return {.number = part.first + order(index % part.windows), .epoch = pass};
}

Draw Sampler::draw(const RoundRange& range, int64_t k) const {
  // For replays by other programs: every site takes each N-th window, without shuffling.
  if (order_ == DataOrder::kSequential) {
    const int64_t j = range.site_sequences + k;
    const int64_t ordinal = j * range.num_members + range.place;
    return {.number = ordinal % num_windows_, .epoch = ordinal / num_windows_};
  }
  // One order for all sites, so they never see a window twice in an epoch, however unequal their
  // work is.
  const int64_t ordinal = range.pool.at(range.offset + k);
  const int64_t epoch = ordinal / num_windows_;
  const Permutation order(num_windows_, seed_, static_cast<uint64_t>(epoch));
  const int64_t place = order(ordinal % num_windows_);
  return parts_.empty() ? Draw{.number = place, .epoch = epoch} : draw_of_part(place, epoch);
}

}  // namespace farstep
