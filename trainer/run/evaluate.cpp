#include "trainer/run/evaluate.h"

#include <algorithm>
#include <cmath>

namespace farstep {

bool is_validation_due(int64_t sequences_before, int64_t sequences_after, int64_t windows) {
  // A step's backward pass takes twice as long as the forward pass; validation has only the latter.
  constexpr double kForwardShare = 1.0 / 3;
  const double between =
      std::max(1.0, static_cast<double>(windows) * kForwardShare / kValidationShare);
  // By the sequences of all sites: they count alike, and validate after the same rounds.
  return std::floor(static_cast<double>(sequences_after) / between) >
         std::floor(static_cast<double>(sequences_before) / between);
}

int64_t windows_taken(int64_t wanted, int64_t available) {
  return wanted == 0 ? available : std::min(wanted, available);
}

EvaluationResult evaluate(TrainableModel& model, const TokenDataset& dataset,
                          const EvaluationShare& share) {
  const int64_t available = dataset.num_windows(share.sequence_length);
  const int64_t taken = windows_taken(share.windows, available);
  const int64_t row = share.sequence_length + 1;
  std::vector<int64_t> tokens;
  EvaluationResult result;
  const auto flush = [&] {
    if (tokens.empty()) return;
    const auto sequences = static_cast<int64_t>(tokens.size()) / row;
    const auto batch = at::from_blob(tokens.data(), {sequences, row}, at::kLong)
                           .to(model.parameters().values().device());
    result.loss_sum += model.summed_loss(batch).item<double>();
    result.tokens += sequences * (row - 1);
    tokens.clear();
  };
  for (int64_t k = share.share; k < taken; k += share.num_shares) {
    // Evenly spaced over the data, so that a few windows stand for all of it.
    const int64_t window = k * available / taken;
    const auto begin = tokens.size();
    tokens.resize(begin + static_cast<std::size_t>(row));
    dataset.read(window * share.sequence_length, std::span(tokens).subspan(begin));
    if (static_cast<int64_t>(tokens.size()) == share.batch * row) flush();
  }
  flush();
  return result;
}

}  // namespace farstep
