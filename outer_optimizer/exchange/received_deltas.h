// The encoded deltas of other sites that a site has received, to reduce its partition of a sync.
// They outlive an exchange that fails: when the sync is repeated, nobody sends them again.
//
// Memory: the encoded size of the site's partition, times the other sites whose deltas count.
// Belongs to the thread of the exchange.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "outer_optimizer/codec/codec.h"
#include "outer_optimizer/schedule/partition.h"

namespace farstep::outer_optimizer {

class ReceivedDeltas {
 public:
  // Makes room for the deltas of `senders` in a partition. What it has received stays, and all else
  // is forgotten. `codec` is the same in all exchanges of a sync, and must outlive them. Throws
  // InternalError if something that the partition calls received is not there.
  void begin(const Codec& codec, const Partition& partition, std::span<const std::string> senders);
  // Returns the memory for a sender's bytes of a range that lies in one of the partition's ranges,
  // whole blocks from its begin. Empty if the sender is none of begin()'s.
  std::span<std::byte> room(const std::string& sender, const Range& range);
  // Notes that all senders' bytes of the range are there.
  void note(const Range& range);
  // Returns what has been received of all senders.
  const std::vector<Range>& ranges() const { return ranges_; }
  void forget();

 private:
  struct Buffer {
    Range range;
    std::map<std::string, std::unique_ptr<std::byte[]>> of_senders = {};
  };
  Buffer* find(const Range& range);

  const Codec* codec_ = nullptr;
  std::vector<Buffer> buffers_;
  std::vector<Range> ranges_;
};

}  // namespace farstep::outer_optimizer
