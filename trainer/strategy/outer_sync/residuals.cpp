// Two encodings lose values: that of the own delta, and that of the mean of the own partition. Each
// has residuals. Those of deltas stay where they are; those of means move when the partitions do.
#include "trainer/strategy/outer_sync/residuals.h"

#include <algorithm>

namespace farstep {

namespace {

int64_t total(std::span<const outer_optimizer::Range> ranges) {
  int64_t sum = 0;
  for (const auto& range : ranges) sum += range.size();
  return sum;
}

std::vector<outer_optimizer::Range> joined(const Residuals::OwnRanges& own) {
  std::vector<outer_optimizer::Range> all;
  for (const auto& ranges : own) all.insert(all.end(), ranges.begin(), ranges.end());
  return all;
}

// Returns the values of the elements of `from`, in the layout of `to`. Elements that `from` lacks
// are 0. Residuals of elements that another site now owns are lost: each is less than a rounding of
// one mean.
std::vector<float> moved(std::span<const float> values, const Residuals::OwnRanges& from_own,
                         const Residuals::OwnRanges& to_own) {
  const auto from = joined(from_own), to = joined(to_own);
  std::vector<float> result(static_cast<std::size_t>(total(to)));
  int64_t to_offset = 0;
  for (const auto& target : to) {
    int64_t from_offset = 0;
    for (const auto& source : from) {
      const outer_optimizer::Range common{std::max(source.begin, target.begin),
                                          std::min(source.end, target.end)};
      if (common.size() > 0) {
        std::copy_n(values.begin() + from_offset + common.begin - source.begin, common.size(),
                    result.begin() + to_offset + common.begin - target.begin);
      }
      from_offset += source.size();
    }
    to_offset += target.size();
  }
  return result;
}

}  // namespace

void Residuals::keep(std::vector<outer_optimizer::Range> fragments, OwnRanges own) {
  int64_t largest_fragment = 0, largest_own = 0;
  for (const auto& range : fragments) largest_fragment = std::max(largest_fragment, range.size());
  for (const auto& ranges : own) largest_own = std::max(largest_own, total(ranges));
  // In the model's order for any number of fragments, so only the residuals of means must be moved.
  of_deltas_.resize(static_cast<std::size_t>(total(fragments)));
  next_of_deltas_.resize(static_cast<std::size_t>(largest_fragment));
  if (own != own_) of_means_ = moved(of_means_, own_, own);
  next_of_means_.resize(static_cast<std::size_t>(largest_own));
  fragments_ = std::move(fragments);
  own_ = std::move(own);
}

void Residuals::drop() {
  *this = {};
}

void Residuals::add_to_delta(int64_t fragment, std::span<float> delta) const {
  if (empty()) return;
  const auto left =
      outer_optimizer::part(std::span(of_deltas_), fragments_[static_cast<std::size_t>(fragment)]);
  for (std::size_t k = 0; k < delta.size(); ++k) delta[k] += left[k];
}

// New residuals are written beside the old ones. If the exchange fails the old ones are still
// there, and the sync can be repeated from the delta.
outer_optimizer::ResidualSpans Residuals::next(int64_t fragment) {
  if (empty()) return {};
  const auto size = fragments_[static_cast<std::size_t>(fragment)].size();
  const auto of_mean = left_of_mean(fragment);
  // The exchange reads the old ones where it writes the new ones.
  std::ranges::copy(of_mean, next_of_means_.begin());
  return {.of_delta = std::span(next_of_deltas_).first(static_cast<std::size_t>(size)),
          .of_mean = std::span(next_of_means_).first(of_mean.size())};
}

void Residuals::commit(int64_t fragment) {
  if (empty()) return;
  const auto left =
      outer_optimizer::part(of_deltas_, fragments_[static_cast<std::size_t>(fragment)]);
  std::copy_n(next_of_deltas_.begin(), left.size(), left.begin());
  const auto of_mean = left_of_mean(fragment);
  std::copy_n(next_of_means_.begin(), of_mean.size(), of_mean.begin());
}

std::span<float> Residuals::left_of_mean(int64_t fragment) {
  const auto index = static_cast<std::size_t>(fragment);
  int64_t begin = 0;
  for (std::size_t before = 0; before < index; ++before) begin += total(own_[before]);
  return outer_optimizer::part(of_means_, {begin, begin + total(own_[index])});
}

void Residuals::add_to(NamedBuffers& buffers) {
  if (empty()) return;
  buffers.push_back(f32_buffer("residual", of_deltas_));
  if (!of_means_.empty()) buffers.push_back(f32_buffer("mean_residual", of_means_));
}

}  // namespace farstep
