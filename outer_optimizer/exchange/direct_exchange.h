// Direct reduce-scatter, then all-gather: two hops and two encodings whatever the number of sites.
//
// Site i owns equal part i. It gets that part of every site's delta, adds them in fp32 in order of
// site id, encodes the mean once and sends it to everyone; all sites, the owner too, decode the
// same bytes. A site sends 2 (N-1)/N of the encoded values.
#pragma once

#include <cstddef>
#include <vector>

#include "outer_optimizer/codec/codec.h"
#include "outer_optimizer/exchange/exchange.h"
#include "wan/transport/transport.h"

namespace farstep {

class DirectExchange : public Exchange {
 public:
  // Both must outlive the exchange.
  DirectExchange(Transport& transport, const Codec& codec) : transport_(transport), codec_(codec) {}
  void average(const SyncPoint& point, std::span<float> values) override;

 private:
  void reduce(std::span<const std::span<std::byte>> encoded, const SyncPoint& point,
              std::span<float> mean) const;

  Transport& transport_;
  const Codec& codec_;
  std::vector<std::byte> outgoing_;  // every site's part of this site's delta; then the mean
  std::vector<std::byte> incoming_;  // this site's part of every site's delta
};

}  // namespace farstep
