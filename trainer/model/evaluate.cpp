// Sums, not means: sites evaluate unequal parts, and only sums of losses and targets add up to the
// mean over all of them.
#include "trainer/model/evaluate.h"

#include <algorithm>
#include <vector>

#include "trainer/base/stopped.h"
#include "trainer/model/batch_tensors.h"

namespace farstep {

int64_t examples_taken(int64_t wanted, int64_t available) {
  return wanted == 0 ? available : std::min(wanted, available);
}

Validation evaluate(TrainableModel& model, const Examples& examples, const ValidationPart& part,
                    const std::stop_token& stop, const TellShare& tell) {
  const auto device = model.parameters().values().device();
  const int64_t available = examples.size();
  const int64_t taken = examples_taken(part.examples, available);
  std::vector<int64_t> numbers;
  Validation sums;
  const auto flush = [&] {
    if (numbers.empty()) return;
    throw_if_stopped(stop);
    const auto batch = examples.read(numbers);
    const auto tensors = batch_tensors(batch.view, 0, batch.view.examples, device);
    const auto score = model.summed_score(tensors, stop);
    sums.loss_sum += score.loss.item<double>();
    if (score.hits.defined()) sums.hits = sums.hits.value_or(0) + score.hits.item<int64_t>();
    sums.targets += batch.view.targets;
    numbers.clear();
  };
  for (int64_t k = part.part; k < taken; k += part.num_parts) {
    // Evenly spaced, so that a few examples stand for all: files may have them in some order.
    numbers.push_back(k * available / taken);
    if (std::ssize(numbers) < part.batch) continue;
    flush();
    if (tell) tell(static_cast<double>(k + 1) / static_cast<double>(taken), sums.loss());
  }
  flush();
  return sums;
}

}  // namespace farstep
