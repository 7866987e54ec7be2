// One array serves in turn as this site's delta, as the sum of its own partition and as the mean of
// all. So a sync needs no second copy of the model.
#include "outer_optimizer/exchange/direct_exchange.h"

#include <algorithm>

#include "outer_optimizer/codec/feedback.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

// Small beside the bytes that a long link has under way: 2 MB at 200 Mbit/s and 80 ms. Large beside
// a message's header of 48 bytes.
constexpr int64_t kChunkBytes = 128 << 10;

// Supplies the pipeline with the delta, chunk by chunk.
class Deltas : public ReduceGatherValues {
 public:
  Deltas(const SyncPoint& point, const Transport& transport, std::span<float> values,
         const ResidualSpans& residuals)
      : codec_(*point.codec),
        point_(point),
        transport_(transport),
        values_(values),
        residuals_(residuals) {
    // All partitions get the same number of chunks, so that they finish together.
    const int64_t block = codec_.block_values();
    const int64_t largest_values =
        std::max(block, kChunkBytes / codec_.encoded_bytes(block) * block);
    int64_t most_values = 0;
    for (const auto& part : point.partitions) most_values = std::max(most_values, part.size());
    const int64_t most_chunks = (most_values + largest_values - 1) / largest_values;
    for (const auto& part : point.partitions) {
      const int64_t even = most_chunks == 0 ? 0 : (part.size() + most_chunks - 1) / most_chunks;
      // Whole blocks, so that the bytes are those of one encoding of the partition.
      chunk_values_.push_back((even + block - 1) / block * block);
    }
  }

  int64_t num_chunks(int site) const override {
    const int64_t of_chunk = chunk_values_[site];
    return of_chunk == 0 ? 0 : (point_.partitions[site].size() + of_chunk - 1) / of_chunk;
  }

  std::size_t chunk_bytes(int site, int64_t chunk) const override {
    return static_cast<std::size_t>(codec_.encoded_bytes(range(site, chunk).size()));
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
  Range range(int site, int64_t chunk) const {
    const auto& partition = point_.partitions[site];
    const int64_t begin = partition.begin + chunk * chunk_values_[site];
    return {begin, std::min(partition.end, begin + chunk_values_[site])};
  }
  std::span<float> part(std::span<float> values, int site, int64_t chunk) const {
    return farstep::part(values, range(site, chunk));
  }
  std::span<float> residual_of_mean(int64_t chunk) const {
    if (residuals_.of_mean.empty()) return {};
    const auto of_chunk = range(transport_.rank(), chunk);
    const int64_t begin = point_.partitions[transport_.rank()].begin;
    return farstep::part(residuals_.of_mean, {of_chunk.begin - begin, of_chunk.end - begin});
  }

  const Codec& codec_;
  const SyncPoint& point_;
  const Transport& transport_;
  const std::span<float> values_;
  const ResidualSpans residuals_;
  std::vector<int64_t> chunk_values_;  // by site
};

}  // namespace

// Checks that the partitions cover the values exactly: sites that disagree would exchange wrong
// ranges.
void DirectExchange::average(const SyncPoint& point, std::span<float> values,
                             const ResidualSpans& residuals) {
  const auto num_sites = static_cast<std::size_t>(transport_.size());
  FARSTEP_CHECK(point.codec != nullptr, "no codec to exchange with");
  FARSTEP_CHECK(point.coefficients.size() == num_sites && point.partitions.size() == num_sites,
                "{} coefficients and {} partitions for {} sites", point.coefficients.size(),
                point.partitions.size(), num_sites);
  int64_t covered = 0;
  for (const auto& part : point.partitions) {
    FARSTEP_CHECK(part.begin == covered && part.size() >= 0, "a partition begins at {}, not at {}",
                  part.begin, covered);
    covered = part.end;
  }
  FARSTEP_CHECK(covered == std::ssize(values), "partitions of {} values for {}", covered,
                values.size());
  const auto has_room = [](std::span<float> residuals_of, int64_t size) {
    return residuals_of.empty() || std::ssize(residuals_of) == size;
  };
  FARSTEP_CHECK(has_room(residuals.of_delta, covered) &&
                    has_room(residuals.of_mean, point.partitions[transport_.rank()].size()),
                "room for {} and {} residuals of {} values", residuals.of_delta.size(),
                residuals.of_mean.size(), values.size());
  Deltas deltas(point, transport_, values, residuals);
  pipeline_.run({.generation = static_cast<uint64_t>(point.generation),
                 .round = static_cast<uint64_t>(point.round),
                 .fragment = static_cast<uint32_t>(point.fragment)},
                deltas);
}

}  // namespace farstep
