// Direct reduce-scatter and all-gather: two hops and two encodings for any number of sites.
//
// Site i receives its partition of every site's delta and adds them in fp32 in order of ranks.
// It encodes the mean once and sends it to everyone. All sites, including the owner, decode the
// same bytes. With equal partitions a site sends 2 (N-1)/N of the encoded values. If only some
// sites have a partition, these are parameter servers.
//
// Besides the values it needs only the buffers of chunks under way, for models of any size.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "outer_optimizer/exchange/exchange.h"
#include "wan/collective/reduce_gather.h"
#include "wan/transport/transport.h"

namespace farstep::outer_optimizer {

class DirectExchange : public Exchange {
 public:
  static constexpr std::size_t kWindowBytes = 64 << 20;

  // `window_bytes` bounds the buffers. The transport must outlive the exchange.
  explicit DirectExchange(wan::Transport& transport, std::size_t window_bytes = kWindowBytes)
      : transport_(transport), pipeline_(transport, window_bytes) {}
  void average(const SyncPoint& point, std::span<float> values,
               const ResidualSpans& residuals = {}) override;
  void average_parts(const SyncPoint& point, std::span<const std::vector<Range>> partitions,
                     FinalParts& source, std::span<float> values) override;

 private:
  void run(const SyncPoint& point, std::span<const std::vector<Range>> partitions,
           FinalParts* source, std::span<float> values, const ResidualSpans& residuals);

  wan::Transport& transport_;
  wan::ReduceGather pipeline_;
};

}  // namespace farstep::outer_optimizer
