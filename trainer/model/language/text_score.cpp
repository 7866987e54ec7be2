#include "trainer/model/language/text_score.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "trainer/base/error.h"

namespace farstep {

namespace {

// Windows of one length, which begin every `length` ids: (count, length + 1).
at::Tensor windows(std::span<const int64_t> ids, int64_t count, int64_t length) {
  const auto all = at::from_blob(const_cast<int64_t*>(ids.data()), {std::ssize(ids)}, at::kLong);
  return all.unfold(0, length + 1, length).narrow(0, 0, count).contiguous();
}

}  // namespace

std::vector<int64_t> ids_of_text(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<int64_t> ids;
  if (tokenizer.opening().empty()) ids.push_back(tokenizer.eos());
  for (const int32_t id : tokenizer.encode_opened(text)) ids.push_back(id);
  return ids;
}

TextScore score_text(Llama& model, std::span<const int64_t> ids, int64_t length, int64_t batch,
                     const TellShare& tell) {
  FARSTEP_CHECK(ids.size() > 1, "a text has at least one token beside the first");
  TextScore score{.tokens = std::ssize(ids) - 1};
  while (ids.size() > 1) {
    const int64_t targets = std::ssize(ids) - 1;
    const int64_t inputs = std::min(length, targets);  // the last window may be shorter
    const int64_t count = std::min(batch, targets / inputs);
    const auto tokens = windows(ids, count, inputs).to(model.device());
    score.loss_sum += model.TrainableModel::summed_score(tokens).loss.item<double>();
    ids = ids.subspan(static_cast<std::size_t>(count * inputs));
    if (!tell) continue;
    const auto read = static_cast<double>(score.tokens + 1 - std::ssize(ids));
    tell(read / static_cast<double>(score.tokens), score.loss_sum / read);
  }
  return score;
}

// The endings are one batch. Their rows are filled up with id 0 at the end, where no token before
// can see it.
std::vector<double> score_endings(Llama& model, const ChoiceIds& ids, int64_t length) {
  FARSTEP_CHECK(!ids.context.empty() && !ids.endings.empty(), "a choice has context and endings");
  const at::NoGradGuard no_grad;
  std::vector<std::vector<int64_t>> rows;
  std::size_t longest = 0;
  for (const auto& ending : ids.endings) {
    FARSTEP_CHECK(!ending.empty(), "an ending has at least one token");
    auto row = ids.context;
    row.insert(row.end(), ending.begin(), ending.end());
    const auto read = std::min(row.size(), static_cast<std::size_t>(length) + 1);
    row.erase(row.begin(), row.end() - static_cast<std::ptrdiff_t>(read));
    longest = std::max(longest, row.size());
    rows.push_back(std::move(row));
  }
  auto tokens = at::zeros({std::ssize(rows), static_cast<int64_t>(longest)}, at::kLong);
  for (std::size_t k = 0; k < rows.size(); ++k) {
    tokens[static_cast<int64_t>(k)].narrow(0, 0, std::ssize(rows[k])).copy_(at::tensor(rows[k]));
  }
  tokens = tokens.to(model.device());
  const int64_t inputs = tokens.size(1) - 1;
  const auto chances = at::log_softmax(model.logits(tokens.narrow(1, 0, inputs)), -1)
                           .gather(2, tokens.narrow(1, 1, inputs).unsqueeze(2))
                           .squeeze(2);  // (endings, inputs): of each target
  std::vector<double> scores;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const int64_t end = std::ssize(rows[k]) - 1;
    const int64_t count = std::min(end, std::ssize(ids.endings[k]));
    const auto own = chances[static_cast<int64_t>(k)].narrow(0, end - count, count);
    scores.push_back(own.sum(at::kDouble).item<double>());
  }
  return scores;
}

}  // namespace farstep
