// The chunks of an exchange: the values cut for the pipeline, part after part.
//
// A chunk is whole blocks of the codec from the begin of its range, so its bytes are those of one
// encoding of the range. All sites get about the same number of chunks in each part, so that they
// finish together. A value; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "outer_optimizer/codec/codec.h"
#include "outer_optimizer/schedule/partition.h"

namespace farstep::outer_optimizer {

// The partitions of all sites by rank, part after part.
using Parts = std::vector<std::vector<Partition>>;

// What a site reduces of one chunk.
struct Chunk {
  Range range;               // empty after the site's last one in the part
  int64_t offset = 0;        // of its first value among all that the site reduces, in order
  bool is_received = false;  // in Partition::received
};

class ChunkLayout {
 public:
  ChunkLayout(const Parts& parts, const Codec& codec);
  // Returns the number of chunks of every site.
  int64_t num_chunks() const { return part_ends_.empty() ? 0 : part_ends_.back(); }
  const Chunk& chunk(int site, int64_t chunk) const {
    return chunks_[static_cast<std::size_t>(site)][static_cast<std::size_t>(chunk)];
  }
  // Returns the part to which a chunk belongs.
  std::size_t part_of(int64_t chunk) const;

 private:
  std::vector<std::vector<Chunk>> chunks_;  // by site
  std::vector<int64_t> part_ends_;          // the chunk after each part's last
};

}  // namespace farstep::outer_optimizer
