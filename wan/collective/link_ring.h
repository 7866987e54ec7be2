// A ring all-reduce over the links of a transport: what Gloo's own ring does, where the bytes must
// travel over connections that exist already, as those of a secure port.
//
// Each site sends to the next one only, and receives from the one before. In N-1 steps the sums of
// N segments grow from site to site. In N-1 more they go round. A chunk goes on as soon as it is
// there, so a segment is on its way through several sites at once.
//
// Each sum is made at one place and copied, so all sites have its bits. It may differ in rounding
// from that of Gloo's ring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "wan/transport/all_reduce.h"
#include "wan/transport/transport.h"

namespace farstep::wan {

class LinkRing : public AllReduce {
 public:
  // Of a segment in one round. A site has at most that many bytes handed to the transport. Between
  // two rounds the ring is empty for one hop, which is little beside so many bytes.
  static constexpr int64_t kSegmentBytes = 32 << 20;

  // The messages have `generation` in their tags, and phase 0. The transport must outlive this.
  LinkRing(Transport& transport, uint64_t generation, int64_t segment_bytes = kSegmentBytes);

  // Throws as Transfer::wait() does; the transport is dead then.
  void all_reduce(std::span<float> values) override;

 private:
  class Round;

  Transport& transport_;
  const uint64_t generation_;
  const int64_t segment_values_;
  uint64_t num_rounds_ = 0;     // begun so far, the same number at all sites
  std::vector<float> arrived_;  // chunks that have not been added yet; kept between calls
};

}  // namespace farstep::wan
