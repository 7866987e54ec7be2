// One array serves in turn as this site's delta, as the sum of its own partition and as the mean of
// all. So a sync needs no second copy of the model.
#include "outer_optimizer/exchange/direct_exchange.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "outer_optimizer/codec/feedback.h"
#include "trainer/base/error.h"

namespace farstep::outer_optimizer {

namespace {

// Of the pipeline of one server, at most. Larger ones were slower: with 64 MiB an exchange by layer
// took 38 s instead of 34 (docs/results/every_step_together.md).
constexpr std::size_t kServerWindowBytes = 16 << 20;

// Supplies the pipeline with the values, chunk by chunk, one part after the other.
class ChunkedValues : public wan::ReduceGatherValues {
 public:
  ChunkedValues(const SyncPoint& point, const Parts& parts, FinalParts* source,
                const wan::Transport& transport, std::span<float> values,
                const ResidualSpans& residuals)
      : codec_(*point.codec),
        point_(point),
        source_(source),
        transport_(transport),
        values_(values),
        residuals_(residuals),
        layout_(parts, codec_) {}

  // A gradient that counts nothing is not even computed. A delta is: its encoding leaves a
  // residual.
  bool has_values() const override { return source_ == nullptr || counts(transport_.rank()); }
  bool is_sent(int from, int to, int64_t chunk) const override {
    return counts(from) && !layout_.chunk(to, chunk).is_received;
  }
  std::span<std::byte> room(int from, int64_t chunk) override {
    if (point_.received == nullptr) return {};
    return point_.received->room(transport_.site(from),
                                 layout_.chunk(transport_.rank(), chunk).range);
  }

  int64_t num_chunks(int /*site*/) const override { return layout_.num_chunks(); }

  std::size_t chunk_bytes(int site, int64_t chunk) const override {
    const auto size = layout_.chunk(site, chunk).range.size();
    return size == 0 ? 0 : static_cast<std::size_t>(codec_.encoded_bytes(size));
  }

  bool is_ready(int64_t chunk) const override {
    return source_ == nullptr || source_->is_final(layout_.part_of(chunk));
  }
  void wait_until_ready(int64_t chunk) override {
    if (source_ != nullptr) source_->wait_until_final(layout_.part_of(chunk));
  }

  void encode(int site, int64_t chunk, std::span<std::byte> bytes) override {
    const auto values = part(values_, site, chunk);
    if (residuals_.of_delta.empty()) {
      codec_.encode(values, bytes);
    } else {
      encode_with_feedback(codec_, values, bytes, part(residuals_.of_delta, site, chunk));
    }
  }

  // The sum replaces this site's own values of the chunk, which have been encoded already.
  void reduce(int64_t chunk, std::span<const std::span<const std::byte>> from_sites,
              std::span<std::byte> result) override {
    const auto& own = layout_.chunk(transport_.rank(), chunk);
    if (point_.received != nullptr && !own.is_received) point_.received->note(own.range);
    const auto sum = part(values_, transport_.rank(), chunk);
    // What encoding lost of the last mean is added to this one.
    const auto residual = residual_of_mean(chunk);
    if (residual.empty()) {
      std::ranges::fill(sum, 0.0F);
    } else {
      std::ranges::copy(residual, sum.begin());
    }
    // In order of the sites, not of arrival, so that the bits of the sum do not depend on the
    // network.
    for (std::size_t site = 0; site < from_sites.size(); ++site) {
      if (!counts(static_cast<int>(site))) continue;
      decoding_from(static_cast<int>(site), [&] {
        codec_.add_decoded(from_sites[site], static_cast<float>(point_.coefficients[site]), sum);
      });
    }
    if (residual.empty()) {
      codec_.encode(sum, result);
    } else {
      encode_with_feedback(codec_, sum, result, residual);
    }
  }

  void decode(int site, int64_t chunk, std::span<const std::byte> result) override {
    decoding_from(site, [&] { codec_.decode(result, part(values_, site, chunk)); });
  }

 private:
  // Adds the sender's name to the exception if its bytes cannot be decoded.
  template <typename Decode>
  void decoding_from(int site, Decode decode) const {
    try {
      decode();
    } catch (const PeerError& error) {
      const auto& name = transport_.site(site);
      throw PeerError(name,
                      fmt::format("the bytes of {} cannot be decoded: {}", name, error.what()));
    }
  }
  // With Hops::kBack nothing is added, and there may be no coefficients.
  bool counts(int site) const {
    return point_.coefficients.empty() || point_.coefficients[static_cast<std::size_t>(site)] != 0;
  }
  std::span<float> part(std::span<float> values, int site, int64_t chunk) const {
    return outer_optimizer::part(values, layout_.chunk(site, chunk).range);
  }
  std::span<float> residual_of_mean(int64_t chunk) const {
    if (residuals_.of_mean.empty()) return {};
    const auto& own = layout_.chunk(transport_.rank(), chunk);
    return outer_optimizer::part(residuals_.of_mean, {own.offset, own.offset + own.range.size()});
  }

  const Codec& codec_;
  const SyncPoint& point_;
  FinalParts* const source_;  // null: all values are final
  const wan::Transport& transport_;
  const std::span<float> values_;
  const ResidualSpans residuals_;
  const ChunkLayout layout_;
};

Parts parts_of(std::span<const std::vector<Range>> partitions) {
  Parts parts;
  for (const auto& ranges : partitions) parts.push_back(partitions_of(ranges));
  return parts;
}

// Checks that the partitions cover each part exactly: sites that disagree would exchange wrong
// ranges.
int64_t covered_values(const Parts& parts, std::size_t num_sites) {
  int64_t covered = 0;
  for (const auto& partitions : parts) {
    FARSTEP_CHECK(partitions.size() == num_sites, "{} partitions for {} sites", partitions.size(),
                  num_sites);
    std::vector<Range> all;
    for (const auto& partition : partitions) {
      std::ranges::copy(partition.ranges(), std::back_inserter(all));
    }
    std::ranges::sort(all, {},
                      [](const Range& range) { return std::pair(range.begin, range.end); });
    for (std::size_t i = 0; i < all.size(); ++i) {
      FARSTEP_CHECK((i == 0 || all[i].begin == all[i - 1].end) && all[i].size() >= 0,
                    "a partition's range is {} to {}, after one to {}", all[i].begin, all[i].end,
                    i == 0 ? 0 : all[i - 1].end);
      covered += all[i].size();
    }
  }
  return covered;
}

// Returns the sites that reduce something.
std::vector<std::size_t> servers_of(std::span<const std::vector<Range>> partitions,
                                    std::size_t num_sites) {
  std::vector<std::size_t> servers;
  for (std::size_t site = 0; site < num_sites; ++site) {
    const auto has_work = [&](const auto& ranges) { return ranges[site].size() > 0; };
    if (std::ranges::any_of(partitions, has_work)) servers.push_back(site);
  }
  return servers;
}

// Whether a server has no work in some part. In one pipeline it would wait there for the others.
bool take_turns(std::span<const std::size_t> servers,
                std::span<const std::vector<Range>> partitions) {
  return std::ranges::any_of(partitions, [&](const auto& ranges) {
    return std::ranges::any_of(servers, [&](std::size_t site) { return ranges[site].size() == 0; });
  });
}

// Returns the parts without other sites' partitions.
Parts parts_alone(std::size_t site, const Parts& parts) {
  Parts own;
  for (const auto& partitions : parts) {
    own.emplace_back(partitions.size())[site] = partitions[site];
  }
  return own;
}

}  // namespace

void DirectExchange::average(const SyncPoint& point, std::span<float> values,
                             const ResidualSpans& residuals) {
  const Parts parts{point.partitions};
  check(point, parts, values, residuals);
  if (point.received != nullptr) make_room(point);
  run(pipeline_, point, parts, nullptr, values, residuals);
}

void DirectExchange::average_parts(const SyncPoint& point,
                                   std::span<const std::vector<Range>> partitions,
                                   FinalParts& source, std::span<float> values) {
  const auto parts = parts_of(partitions);
  check(point, parts, values, {});
  const auto servers = servers_of(partitions, static_cast<std::size_t>(transport_.size()));
  if (take_turns(servers, partitions)) {
    run_side_by_side(servers, point, parts, source, values);
  } else {
    run(pipeline_, point, parts, &source, values, {});
  }
}

void DirectExchange::make_room(const SyncPoint& point) const {
  std::vector<std::string> senders;
  for (int site = 0; site < transport_.size(); ++site) {
    if (site != transport_.rank() && point.coefficients[static_cast<std::size_t>(site)] != 0) {
      senders.push_back(transport_.site(site));
    }
  }
  point.received->begin(*point.codec, point.partitions[static_cast<std::size_t>(transport_.rank())],
                        senders);
}

void DirectExchange::run(wan::ReduceGather& pipeline, const SyncPoint& point, const Parts& parts,
                         FinalParts* source, std::span<float> values,
                         const ResidualSpans& residuals) const {
  ChunkedValues chunks(point, parts, source, transport_, values, residuals);
  pipeline.run({.generation = static_cast<uint64_t>(point.generation),
                .round = static_cast<uint64_t>(point.round),
                .fragment = static_cast<uint32_t>(point.fragment)},
               chunks, point.hops);
}

void DirectExchange::run_side_by_side(std::span<const std::size_t> servers, const SyncPoint& point,
                                      const Parts& parts, FinalParts& source,
                                      std::span<float> values) {
  server_pipelines_.resize(static_cast<std::size_t>(transport_.size()));
  std::mutex mutex;
  std::exception_ptr failure;  // the first: the others follow from it
  const auto serve = [&](std::size_t site) {
    try {
      run(*server_pipelines_[site], point, parts_alone(site, parts), &source, values, {});
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
      // Ends the other pipelines, which may wait for bytes that will not come.
      transport_.abort(transport_.site(transport_.rank()), "its exchange failed");
    }
  };
  std::vector<std::jthread> threads;
  for (const std::size_t site : servers) {
    auto& pipeline = server_pipelines_[site];
    if (!pipeline) {
      pipeline = std::make_unique<wan::ReduceGather>(transport_,
                                                     std::min(window_bytes_, kServerWindowBytes));
    }
    threads.emplace_back(serve, site);
  }
  threads.clear();  // joins
  if (failure) std::rethrow_exception(failure);
}

void DirectExchange::check(const SyncPoint& point, const Parts& parts, std::span<float> values,
                           const ResidualSpans& residuals) const {
  const auto num_sites = static_cast<std::size_t>(transport_.size());
  FARSTEP_CHECK(point.codec != nullptr, "no codec to exchange with");
  FARSTEP_CHECK(point.coefficients.size() == num_sites || point.hops == wan::Hops::kBack,
                "{} coefficients for {} sites", point.coefficients.size(), num_sites);
  const int64_t covered = covered_values(parts, num_sites);
  FARSTEP_CHECK(covered == std::ssize(values), "partitions of {} values for {}", covered,
                values.size());
  const auto has_room = [](std::span<float> residuals_of, int64_t size) {
    return residuals_of.empty() || std::ssize(residuals_of) == size;
  };
  const auto own_values = [&] {
    return parts.front()[static_cast<std::size_t>(transport_.rank())].size();
  };
  FARSTEP_CHECK(has_room(residuals.of_delta, covered) &&
                    (residuals.of_mean.empty() || has_room(residuals.of_mean, own_values())),
                "room for {} and {} residuals of {} values", residuals.of_delta.size(),
                residuals.of_mean.size(), values.size());
}

}  // namespace farstep::outer_optimizer
