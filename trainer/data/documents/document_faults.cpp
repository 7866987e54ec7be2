#include "trainer/data/documents/document_faults.h"

#include <spdlog/spdlog.h>

#include <cmath>

#include "trainer/base/error.h"

namespace farstep {

namespace {

constexpr std::size_t kMostNamed = 20;

}  // namespace

void DocumentFaults::add(const std::filesystem::path& file, const Document& document) {
  ++count_;
  ++of_kind_[static_cast<std::size_t>(document.fault)];
  if (named_.size() == kMostNamed) return;
  named_.push_back(fmt::format("{}: {}", file.string(), document.what));
  if (rule_ == BadText::kSkip) spdlog::warn("left out: {}", named_.back());
}

void DocumentFaults::finish(int64_t documents) const {
  if (count_ == 0) return;
  if (rule_ == BadText::kSkip) return spdlog::warn("left out: {}", sum(documents));
  std::string text;
  for (const auto& fault : named_) text += fault + "\n";
  const auto unnamed = count_ - static_cast<int64_t>(named_.size());
  if (unnamed > 0) text += fmt::format("and {} more\n", unnamed);
  throw DataError(
      fmt::format("{}{}. Mend the text, or leave such documents out with --bad-text skip", text,
                  sum(documents)));
}

void DocumentFaults::require_few(int64_t documents, double most) const {
  if (rule_ != BadText::kSkip || share_of(documents) <= most) return;
  const auto percent = std::ceil(100 * share_of(documents));
  throw DataError(fmt::format(
      "{}, and at most {:g} % may be left out. Mend the text, or name the member that has it with "
      "--text-field; or give the same command with --most-left-out {:g}, which goes on from here",
      sum(documents), 100 * most, percent / 100));
}

double DocumentFaults::share_of(int64_t documents) const {
  return documents == 0 ? 0 : static_cast<double>(count_) / static_cast<double>(documents);
}

// "30 of 300 documents (10.00 %) are no text: 27 not JSON, 3 not UTF-8".
std::string DocumentFaults::sum(int64_t documents) const {
  std::string kinds;
  const auto add_kind = [&](int64_t count, std::string_view name) {
    if (count > 0) kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", count, name);
  };
  int64_t before = count_;
  for (std::size_t kind = 0; kind < of_kind_.size(); ++kind) {
    before -= of_kind_[kind];
    add_kind(of_kind_[kind], fault_names()[kind]);
  }
  add_kind(before, "before this call went on");
  return fmt::format("{} of {} documents ({:.2f} %) are no text: {}", count_, documents,
                     100 * share_of(documents), kinds);
}

}  // namespace farstep
