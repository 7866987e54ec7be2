// Direct reduce-scatter, then all-gather: two hops and two encodings whatever the number of sites.
//
// Site i gets its partition of every site's delta, adds them in fp32 in order of site id, encodes
// the mean once and sends it to everyone; all sites, the owner too, decode the same bytes. With
// equal partitions a site sends 2 (N-1)/N of the encoded values. Where only some sites have a
// partition, these are parameter servers.
//
// Beside the values themselves it needs the buffers of what is on its way, whatever the model's
// size.
#pragma once

#include <cstddef>

#include "outer_optimizer/exchange/exchange.h"
#include "wan/collective/reduce_gather.h"
#include "wan/transport/transport.h"

namespace farstep {

class DirectExchange : public Exchange {
 public:
  static constexpr std::size_t kWindowBytes = 64 << 20;

  // The transport must outlive the exchange. `window_bytes` bounds what is on its way.
  explicit DirectExchange(Transport& transport, std::size_t window_bytes = kWindowBytes)
      : transport_(transport), pipeline_(transport, window_bytes) {}
  void average(const SyncPoint& point, std::span<float> values,
               const Leftovers& leftovers = {}) override;

 private:
  Transport& transport_;
  ReduceGather pipeline_;
};

}  // namespace farstep
