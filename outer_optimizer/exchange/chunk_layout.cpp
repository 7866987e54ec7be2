#include "outer_optimizer/exchange/chunk_layout.h"

#include <algorithm>

namespace farstep::outer_optimizer {

namespace {

// Small beside the bytes that a long link has under way: 2 MB at 200 Mbit/s and 80 ms. Large beside
// a message's header of 48 bytes.
constexpr int64_t kChunkBytes = 128 << 10;

void cut(std::span<const Range> ranges, int64_t chunk_values, bool is_received, int64_t& offset,
         std::vector<Chunk>& chunks) {
  for (const auto& range : ranges) {
    for (int64_t begin = range.begin; begin < range.end; begin += chunk_values) {
      const Range part{begin, std::min(range.end, begin + chunk_values)};
      chunks.push_back({.range = part, .offset = offset, .is_received = is_received});
      offset += part.size();
    }
  }
}

}  // namespace

ChunkLayout::ChunkLayout(const Parts& parts, const Codec& codec) {
  const int64_t block = codec.block_values();
  const int64_t largest_values = std::max(block, kChunkBytes / codec.encoded_bytes(block) * block);
  chunks_.resize(parts.empty() ? 0 : parts.front().size());
  std::vector<int64_t> offsets(chunks_.size());
  for (const auto& partitions : parts) {
    int64_t most_values = 0;
    for (const auto& partition : partitions) {
      most_values = std::max(most_values, partition.size());
    }
    const int64_t wanted =
        std::max<int64_t>(1, (most_values + largest_values - 1) / largest_values);
    std::size_t end = 0;
    for (std::size_t site = 0; site < chunks_.size(); ++site) {
      const int64_t even = (partitions[site].size() + wanted - 1) / wanted;
      const int64_t chunk_values = std::max(block, (even + block - 1) / block * block);
      // What is there already comes first: its results are ready to be sent.
      cut(partitions[site].received, chunk_values, true, offsets[site], chunks_[site]);
      cut(partitions[site].awaited, chunk_values, false, offsets[site], chunks_[site]);
      end = std::max(end, chunks_[site].size());
    }
    for (auto& of_site : chunks_) of_site.resize(end);
    part_ends_.push_back(static_cast<int64_t>(end));
  }
}

std::size_t ChunkLayout::part_of(int64_t chunk) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(part_ends_, chunk) - part_ends_.begin());
}

}  // namespace farstep::outer_optimizer
