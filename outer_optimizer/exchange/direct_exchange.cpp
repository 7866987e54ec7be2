#include "outer_optimizer/exchange/direct_exchange.h"

#include <algorithm>

#include "outer_optimizer/schedule/partition.h"
#include "trainer/base/error.h"
#include "wan/collective/all_to_all.h"

namespace farstep {

namespace {

enum Phase : uint32_t { kReduceScatter, kAllGather };

Tag tag_of(const SyncPoint& point, Phase phase) {
  return {.generation = static_cast<uint64_t>(point.generation),
          .round = static_cast<uint64_t>(point.round),
          .fragment = static_cast<uint32_t>(point.fragment),
          .phase = phase};
}

// Cuts `buffer`, made as large as needed, into consecutive pieces of the given sizes.
std::vector<std::span<std::byte>> cut(std::vector<std::byte>& buffer,
                                      const std::vector<int64_t>& sizes_bytes) {
  int64_t total_bytes = 0;
  for (const int64_t size : sizes_bytes) total_bytes += size;
  buffer.resize(static_cast<std::size_t>(total_bytes));
  std::vector<std::span<std::byte>> pieces;
  auto rest = std::span(buffer);
  for (const int64_t size : sizes_bytes) {
    pieces.push_back(rest.first(static_cast<std::size_t>(size)));
    rest = rest.subspan(static_cast<std::size_t>(size));
  }
  return pieces;
}

}  // namespace

void DirectExchange::average(const SyncPoint& point, std::span<float> values) {
  const int num_sites = transport_.size();
  const int self = transport_.rank();
  FARSTEP_CHECK(point.coefficients.size() == static_cast<std::size_t>(num_sites),
                "{} coefficients for {} sites", point.coefficients.size(), num_sites);
  std::vector<std::span<float>> parts;
  std::vector<int64_t> part_bytes;
  for (int site = 0; site < num_sites; ++site) {
    const auto range = equal_part(static_cast<int64_t>(values.size()), site, num_sites);
    parts.push_back(values.subspan(static_cast<std::size_t>(range.begin),
                                   static_cast<std::size_t>(range.size())));
    part_bytes.push_back(codec_.encoded_bytes(range.size()));
  }
  const auto outgoing = cut(outgoing_, part_bytes);
  const auto incoming =
      cut(incoming_, std::vector<int64_t>(static_cast<std::size_t>(num_sites), part_bytes[self]));

  for (int site = 0; site < num_sites; ++site) codec_.encode(parts[site], outgoing[site]);
  all_to_all(transport_, tag_of(point, kReduceScatter),
             std::vector<std::span<const std::byte>>(outgoing.begin(), outgoing.end()), incoming);
  reduce(incoming, point, parts[self]);

  codec_.encode(parts[self], outgoing[self]);
  all_gather(transport_, tag_of(point, kAllGather), outgoing[self], outgoing);
  for (int site = 0; site < num_sites; ++site) codec_.decode(outgoing[site], parts[site]);
}

void DirectExchange::reduce(std::span<const std::span<std::byte>> encoded, const SyncPoint& point,
                            std::span<float> mean) const {
  std::vector<float> decoded(mean.size());
  std::fill(mean.begin(), mean.end(), 0.0F);
  for (std::size_t site = 0; site < encoded.size(); ++site) {
    codec_.decode(encoded[site], decoded);
    const auto coefficient = static_cast<float>(point.coefficients[site]);
    for (std::size_t k = 0; k < mean.size(); ++k) mean[k] += coefficient * decoded[k];
  }
}

}  // namespace farstep
