// Direct reduce-scatter and all-gather: two hops and two encodings for any number of sites.
//
// Site i receives its partition of every site's delta and adds them in fp32 in order of ranks.
// It encodes the mean once and sends it to everyone. All sites, including the owner, decode the
// same bytes. With equal partitions a site sends 2 (N-1)/N of the encoded values. If only some
// sites have a partition, these are parameter servers.
//
// Besides the values it needs only the buffers of chunks under way, for models of any size.
//
// With SyncPoint::received a site keeps what it receives of the others' deltas, and an exchange
// that follows one that failed does not send that again. Its means are sent anew: they change with
// the sites that take part.
//
// In average_parts() a server may have no work in some part, as with whole layers. Then each server
// has a pipeline and a thread of its own, so that all servers work at the same time.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "outer_optimizer/exchange/chunk_layout.h"
#include "outer_optimizer/exchange/exchange.h"
#include "wan/collective/reduce_gather.h"
#include "wan/transport/transport.h"

namespace farstep::outer_optimizer {

class DirectExchange : public Exchange {
 public:
  static constexpr std::size_t kWindowBytes = 64 << 20;

  // `window_bytes` bounds the buffers; servers that work side by side have 16 MiB each at most. The
  // transport must outlive the exchange.
  explicit DirectExchange(wan::Transport& transport, std::size_t window_bytes = kWindowBytes)
      : transport_(transport), window_bytes_(window_bytes), pipeline_(transport, window_bytes) {}
  void average(const SyncPoint& point, std::span<float> values,
               const ResidualSpans& residuals = {}) override;
  void average_parts(const SyncPoint& point, std::span<const std::vector<Range>> partitions,
                     FinalParts& source, std::span<float> values) override;

 private:
  void check(const SyncPoint& point, const Parts& parts, std::span<float> values,
             const ResidualSpans& residuals) const;
  void make_room(const SyncPoint& point) const;
  void run(wan::ReduceGather& pipeline, const SyncPoint& point, const Parts& parts,
           FinalParts* source, std::span<float> values, const ResidualSpans& residuals) const;
  void run_side_by_side(std::span<const std::size_t> servers, const SyncPoint& point,
                        const Parts& parts, FinalParts& source, std::span<float> values);

  wan::Transport& transport_;
  const std::size_t window_bytes_;
  wan::ReduceGather pipeline_;                                        // of all servers together
  std::vector<std::unique_ptr<wan::ReduceGather>> server_pipelines_;  // by rank, made when needed
};

}  // namespace farstep::outer_optimizer
