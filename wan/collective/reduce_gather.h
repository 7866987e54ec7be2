// Reduce-scatter and all-gather as one pipeline: how the sites' bytes become one result.
//
// The work is cut in partitions, one a site, of which some may be empty, and each partition in
// chunks. Every site sends its chunk c of partition p to site p; that reduces what all sent, and
// sends the result to everyone. Chunks travel while others are encoded, reduced and decoded, so
// that a link is busy from the first to the last: time is that of the bytes and two hops.
//
// All sites run the same work with the same tag at the same time. Memory is bounded by the window,
// and kept from run to run. One run at a time; used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "wan/transport/transport.h"

namespace farstep {

// What is in the bytes. Sites are ranks of the transport. Called in order of the chunks by the
// thread that runs the pipeline: a chunk of every partition is encoded before it is reduced, and
// reduced before it is decoded.
class ReduceGatherWork {
 public:
  virtual ~ReduceGatherWork() = default;
  // Chunks of the partition of `site`, and the bytes of one; the same at all sites.
  virtual int64_t num_chunks(int site) const = 0;
  virtual std::size_t chunk_bytes(int site, int64_t chunk) const = 0;
  // This site's own values of the chunk, in bytes.
  virtual void encode(int site, int64_t chunk, std::span<std::byte> bytes) = 0;
  // The result of a chunk of this site's partition, from the bytes of all sites in order of ranks.
  virtual void reduce(int64_t chunk, std::span<const std::span<const std::byte>> from_sites,
                      std::span<std::byte> result) = 0;
  // Takes over the result of a chunk.
  virtual void decode(int site, int64_t chunk, std::span<const std::byte> result) = 0;
};

class ReduceGather {
 public:
  // About `window_bytes` of buffers hold what is on its way; the transport must outlive this.
  ReduceGather(Transport& transport, std::size_t window_bytes);
  ~ReduceGather();

  // Throws as Transfer::wait() does, and what `work` throws; the transport is dead then.
  void run(const Tag& tag, ReduceGatherWork& work);

 private:
  class Step;
  void begin(int64_t chunk, const Tag& tag, ReduceGatherWork& work);
  void reduce(int64_t chunk, const Tag& tag, ReduceGatherWork& work);
  void finish(int64_t chunk, ReduceGatherWork& work);
  Step& step(int64_t chunk);

  Transport& transport_;
  const std::size_t window_bytes_;
  std::vector<std::unique_ptr<Step>> steps_;  // chunk c in element c modulo their number
};

}  // namespace farstep
