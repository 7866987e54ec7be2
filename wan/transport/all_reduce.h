// Adds up the values of all members, wherever the bytes travel.
#pragma once

#include <span>

namespace farstep::wan {

// One thread at a time uses it.
class AllReduce {
 public:
  virtual ~AllReduce() = default;
  // Replaces the values by the sum over all sites, with the same bits at each. All sites must call
  // it at the same time with equally many values. Throws PeerError; it cannot be used afterwards.
  virtual void all_reduce(std::span<float> values) = 0;
};

}  // namespace farstep::wan
