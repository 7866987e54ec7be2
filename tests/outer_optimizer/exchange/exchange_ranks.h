// Exchanges between threads, each a site, over transports in memory.
#pragma once

#include <cstddef>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "outer_optimizer/exchange/direct_exchange.h"
#include "tests/support/memory_transport.h"
#include "tests/wan/transport/run_ranks.h"

namespace farstep::outer_optimizer {

using Values = std::vector<float>;

inline std::vector<Values> random_deltas(int num_sites, std::size_t size) {
  std::mt19937 generator(static_cast<unsigned>(100 * num_sites) + static_cast<unsigned>(size));
  std::normal_distribution<float> normal;
  std::vector<Values> deltas(static_cast<std::size_t>(num_sites), Values(size));
  for (auto& delta : deltas) {
    for (auto& value : delta) value = normal(generator);
  }
  return deltas;
}

inline std::vector<std::unique_ptr<wan::Transport>> connect(int num_sites) {
  std::vector<std::string> names;
  for (int site = 0; site < num_sites; ++site) names.push_back("node" + std::to_string(site));
  return connect_in_memory(names, 10);
}

inline std::vector<Range> equal_ranges(std::size_t size, int num_sites) {
  return cut_by_shares({0, static_cast<int64_t>(size)},
                       std::vector<double>(static_cast<std::size_t>(num_sites), 1.0));
}
inline std::vector<Partition> equal_partitions(std::size_t size, int num_sites) {
  return partitions_of(equal_ranges(size, num_sites));
}

// The mean that each site gets for its delta; with equal partitions unless the point has others.
inline std::vector<Values> average(const std::vector<std::unique_ptr<wan::Transport>>& transports,
                                   const std::vector<Values>& deltas, SyncPoint point,
                                   const Codec& codec = Fp32Codec(),
                                   std::size_t window_bytes = DirectExchange::kWindowBytes) {
  const int num_sites = static_cast<int>(deltas.size());
  point.codec = &codec;
  if (point.partitions.empty()) point.partitions = equal_partitions(deltas[0].size(), num_sites);
  return wan::run_ranks(num_sites, [&](int rank) {
    DirectExchange exchange(*transports[static_cast<std::size_t>(rank)], window_bytes);
    Values values = deltas[static_cast<std::size_t>(rank)];
    exchange.average(point, values);
    return values;
  });
}

}  // namespace farstep::outer_optimizer
