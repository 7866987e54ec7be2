// One array serves in turn as this site's delta, as the sum of its own partition and as the mean of
// all. So a sync needs no second copy of the model.
#include "outer_optimizer/exchange/direct_exchange.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>

#include "outer_optimizer/codec/feedback.h"
#include "trainer/base/error.h"

namespace farstep::outer_optimizer {

namespace {

// Small beside the bytes that a long link has under way: 2 MB at 200 Mbit/s and 80 ms. Large beside
// a message's header of 48 bytes.
constexpr int64_t kChunkBytes = 128 << 10;

// Of the pipeline of one server, at most. Larger ones were slower: with 64 MiB an exchange by layer
// took 38 s instead of 34 (docs/results/every_step_together.md).
constexpr std::size_t kServerWindowBytes = 16 << 20;

// The chunks of one part of the values.
struct ChunkedPart {
  std::span<const Range> ranges;      // by the site that reduces it
  std::vector<int64_t> chunk_values;  // of a chunk, by site
  int64_t first_chunk = 0, end_chunk = 0;
};

// Supplies the pipeline with the values, chunk by chunk, one part after the other.
class ChunkedValues : public wan::ReduceGatherValues {
 public:
  ChunkedValues(const SyncPoint& point, std::span<const std::vector<Range>> partitions,
                FinalParts* source, const wan::Transport& transport, std::span<float> values,
                const ResidualSpans& residuals)
      : codec_(*point.codec),
        point_(point),
        source_(source),
        transport_(transport),
        values_(values),
        residuals_(residuals) {
    const int64_t block = codec_.block_values();
    const int64_t largest_values =
        std::max(block, kChunkBytes / codec_.encoded_bytes(block) * block);
    int64_t first_chunk = 0;
    for (const auto& ranges : partitions) {
      // All ranges of a part get the same number of chunks, so that they finish together.
      int64_t most_values = 0;
      for (const auto& range : ranges) most_values = std::max(most_values, range.size());
      const int64_t num_chunks = (most_values + largest_values - 1) / largest_values;
      auto& part = parts_.emplace_back(ChunkedPart{.ranges = ranges,
                                                   .chunk_values = {},
                                                   .first_chunk = first_chunk,
                                                   .end_chunk = first_chunk + num_chunks});
      for (const auto& range : ranges) {
        const int64_t even = num_chunks == 0 ? 0 : (range.size() + num_chunks - 1) / num_chunks;
        // Whole blocks, so that the bytes are those of one encoding of the range.
        part.chunk_values.push_back((even + block - 1) / block * block);
      }
      first_chunk = part.end_chunk;
    }
  }

  // A gradient that counts nothing need not travel. A delta of a newcomer does: its encoding leaves
  // a residual.
  bool brings_values(int site) const override {
    return source_ == nullptr || point_.coefficients.empty() ||
           point_.coefficients[static_cast<std::size_t>(site)] != 0;
  }

  int64_t num_chunks(int /*site*/) const override {
    return parts_.empty() ? 0 : parts_.back().end_chunk;
  }

  std::size_t chunk_bytes(int site, int64_t chunk) const override {
    const auto size = range(site, chunk).size();
    return size == 0 ? 0 : static_cast<std::size_t>(codec_.encoded_bytes(size));
  }

  bool is_ready(int64_t chunk) const override {
    return source_ == nullptr || source_->is_final(part_of(chunk));
  }
  void wait_until_ready(int64_t chunk) override {
    if (source_ != nullptr) source_->wait_until_final(part_of(chunk));
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
      if (!brings_values(static_cast<int>(site))) continue;
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
  std::size_t part_of(int64_t chunk) const {
    const auto after = std::ranges::upper_bound(parts_, chunk, {}, &ChunkedPart::end_chunk);
    return static_cast<std::size_t>(after - parts_.begin());
  }
  // The range is empty after the last value of the site's.
  Range range(int site, int64_t chunk) const {
    const auto& part = parts_[part_of(chunk)];
    const auto& whole = part.ranges[static_cast<std::size_t>(site)];
    const int64_t of_chunk = part.chunk_values[static_cast<std::size_t>(site)];
    const int64_t begin = std::min(whole.end, whole.begin + (chunk - part.first_chunk) * of_chunk);
    return {begin, std::min(whole.end, begin + of_chunk)};
  }
  std::span<float> part(std::span<float> values, int site, int64_t chunk) const {
    return outer_optimizer::part(values, range(site, chunk));
  }
  std::span<float> residual_of_mean(int64_t chunk) const {
    if (residuals_.of_mean.empty()) return {};
    const auto of_chunk = range(transport_.rank(), chunk);
    const int64_t begin = parts_.front().ranges[transport_.rank()].begin;  // there is one part
    return outer_optimizer::part(residuals_.of_mean,
                                 {of_chunk.begin - begin, of_chunk.end - begin});
  }

  const Codec& codec_;
  const SyncPoint& point_;
  FinalParts* const source_;  // null: all values are final
  const wan::Transport& transport_;
  const std::span<float> values_;
  const ResidualSpans residuals_;
  std::vector<ChunkedPart> parts_;
};

// Checks that the partitions cover each part exactly: sites that disagree would exchange wrong
// ranges.
int64_t covered_values(std::span<const std::vector<Range>> partitions, std::size_t num_sites) {
  int64_t covered = 0;
  for (const auto& ranges : partitions) {
    FARSTEP_CHECK(ranges.size() == num_sites, "{} partitions for {} sites", ranges.size(),
                  num_sites);
    for (int64_t next = ranges.front().begin; const auto& range : ranges) {
      FARSTEP_CHECK(range.begin == next && range.size() >= 0, "a partition begins at {}, not at {}",
                    range.begin, next);
      next = range.end;
      covered += range.size();
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

// Returns the parts without other sites' ranges.
std::vector<std::vector<Range>> parts_of(std::size_t site,
                                         std::span<const std::vector<Range>> partitions) {
  std::vector<std::vector<Range>> own;
  for (const auto& ranges : partitions) {
    own.emplace_back(ranges.size())[site] = ranges[site];
  }
  return own;
}

}  // namespace

void DirectExchange::average(const SyncPoint& point, std::span<float> values,
                             const ResidualSpans& residuals) {
  const std::span partitions(&point.partitions, 1);
  check(point, partitions, values, residuals);
  run(pipeline_, point, partitions, nullptr, values, residuals);
}

void DirectExchange::average_parts(const SyncPoint& point,
                                   std::span<const std::vector<Range>> partitions,
                                   FinalParts& source, std::span<float> values) {
  check(point, partitions, values, {});
  const auto servers = servers_of(partitions, static_cast<std::size_t>(transport_.size()));
  if (take_turns(servers, partitions)) {
    run_side_by_side(servers, point, partitions, source, values);
  } else {
    run(pipeline_, point, partitions, &source, values, {});
  }
}

void DirectExchange::run(wan::ReduceGather& pipeline, const SyncPoint& point,
                         std::span<const std::vector<Range>> partitions, FinalParts* source,
                         std::span<float> values, const ResidualSpans& residuals) const {
  ChunkedValues chunks(point, partitions, source, transport_, values, residuals);
  pipeline.run({.generation = static_cast<uint64_t>(point.generation),
                .round = static_cast<uint64_t>(point.round),
                .fragment = static_cast<uint32_t>(point.fragment)},
               chunks, point.hops);
}

// The pipelines need no tags of their own: only one of them sends a site contributions, and only
// one sends a site's results.
void DirectExchange::run_side_by_side(std::span<const std::size_t> servers, const SyncPoint& point,
                                      std::span<const std::vector<Range>> partitions,
                                      FinalParts& source, std::span<float> values) {
  server_pipelines_.resize(static_cast<std::size_t>(transport_.size()));
  std::mutex mutex;
  std::exception_ptr failure;  // the first: the others follow from it
  const auto serve = [&](std::size_t site) {
    try {
      run(*server_pipelines_[site], point, parts_of(site, partitions), &source, values, {});
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

void DirectExchange::check(const SyncPoint& point, std::span<const std::vector<Range>> partitions,
                           std::span<float> values, const ResidualSpans& residuals) const {
  const auto num_sites = static_cast<std::size_t>(transport_.size());
  FARSTEP_CHECK(point.codec != nullptr, "no codec to exchange with");
  FARSTEP_CHECK(point.coefficients.size() == num_sites || point.hops == wan::Hops::kBack,
                "{} coefficients for {} sites", point.coefficients.size(), num_sites);
  const int64_t covered = covered_values(partitions, num_sites);
  FARSTEP_CHECK(covered == std::ssize(values), "partitions of {} values for {}", covered,
                values.size());
  const auto has_room = [](std::span<float> residuals_of, int64_t size) {
    return residuals_of.empty() || std::ssize(residuals_of) == size;
  };
  FARSTEP_CHECK(
      has_room(residuals.of_delta, covered) &&
          (residuals.of_mean.empty() ||
           has_room(residuals.of_mean,
                    partitions.front()[static_cast<std::size_t>(transport_.rank())].size())),
      "room for {} and {} residuals of {} values", residuals.of_delta.size(),
      residuals.of_mean.size(), values.size());
}

}  // namespace farstep::outer_optimizer
