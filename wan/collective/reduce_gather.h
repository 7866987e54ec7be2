// Reduce-scatter and all-gather in one pipeline: turns the sites' bytes into one result at all.
//
// The data is cut into one partition for each site (some may be empty), and each partition into
// chunks. Every site sends chunk c of partition p to site p. Site p reduces the chunks of all sites
// and sends the result to everyone. A chunk travels while others are encoded, reduced and decoded,
// so the link stays busy: the time is that of the bytes plus two hops.
//
// A run may do one of the two hops alone: then the sites' bytes reach only the site that reduces
// them, or the sites get what the owner of a partition has.
//
// All sites call run() with equal partitions, hops and tag at the same time. `window_bytes` limits
// the buffers, which are kept between runs. One thread uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "wan/transport/transport.h"

namespace farstep::wan {

// What a run does with the bytes: both hops, or one of them.
enum class Hops {
  kThere,      // each site's bytes to the site that reduces them
  kBack,       // the owner's bytes of each partition to all sites
  kThereBack,  // first the one, then the other
};

// Converts between a caller's values and bytes. Sites are ranks of the transport. The thread inside
// run() makes all calls, in order of the chunks: it encodes a chunk of every partition before it
// reduces that chunk, and reduces it before it decodes it.
class ReduceGatherValues {
 public:
  virtual ~ReduceGatherValues() = default;
  // Returns whether this site has values of its own. One that has none only reduces.
  virtual bool has_values() const { return true; }
  // Number of chunks in the partition of `site`, and bytes of one, which may be 0; the same at all
  // sites.
  virtual int64_t num_chunks(int site) const = 0;
  virtual std::size_t chunk_bytes(int site, int64_t chunk) const = 0;
  // Returns whether site `from` sends its bytes of the chunk to `to`; the same at both. If not,
  // reduce() does not need them, or room() has them already.
  virtual bool is_sent(int /*from*/, int /*to*/, int64_t /*chunk*/) const { return true; }
  // Returns the memory for another site's bytes of a chunk of this site's partition, which keeps
  // them after the run; empty if they need not be kept.
  virtual std::span<std::byte> room(int /*from*/, int64_t /*chunk*/) { return {}; }
  // Returns whether the chunk of every partition has its values. Chunks get them in order.
  // wait_until_ready() waits for that, and throws if it will never be. By default all have them.
  virtual bool is_ready(int64_t /*chunk*/) const { return true; }
  virtual void wait_until_ready(int64_t /*chunk*/) {}
  // Writes this site's own values of the chunk.
  virtual void encode(int site, int64_t chunk, std::span<std::byte> bytes) = 0;
  // Writes the result of a chunk of this site's partition, from the bytes of all sites in order of
  // ranks. Those of a site that does not send them, and has no room(), are undefined.
  virtual void reduce(int64_t chunk, std::span<const std::span<const std::byte>> from_sites,
                      std::span<std::byte> result) = 0;
  // Reads the result of a chunk. Not called for other sites' partitions without the hop back.
  virtual void decode(int site, int64_t chunk, std::span<const std::byte> result) = 0;
};

class ReduceGather {
 public:
  // Uses about `window_bytes` of buffers. The transport must outlive this object.
  ReduceGather(Transport& transport, std::size_t window_bytes);
  ~ReduceGather();

  // Throws as Transfer::wait() does, and passes on exceptions of `values`; the transport is dead
  // then.
  void run(const Tag& tag, ReduceGatherValues& values, Hops hops = Hops::kThereBack);

 private:
  class Step;
  // Makes the steps that the window has room for, at most one a chunk. Returns their number.
  int64_t make_steps(int64_t num_chunks, const ReduceGatherValues& values);
  // Returns how many more chunks are begun before a chunk is reduced.
  int64_t chunks_ahead(const ReduceGatherValues& values) const;
  void begin(int64_t chunk, const Tag& tag, ReduceGatherValues& values, Hops hops);
  void reduce(int64_t chunk, const Tag& tag, ReduceGatherValues& values, Hops hops);
  void finish(int64_t chunk, ReduceGatherValues& values, Hops hops);
  Step& step(int64_t chunk);

  Transport& transport_;
  const std::size_t window_bytes_;
  std::vector<std::unique_ptr<Step>> steps_;  // chunk c uses element c modulo their number
};

}  // namespace farstep::wan
