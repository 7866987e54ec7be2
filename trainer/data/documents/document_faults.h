// The documents of a dataset that are no text, and what comes of them.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/documents/text_source.h"

namespace farstep {

// What happens with text that is none: a line that is no JSON, a file that is not UTF-8.
enum class BadText { kRefuse, kSkip };

inline std::span<const std::string_view> enum_names(BadText) {
  static constexpr std::string_view kNames[] = {"refuse", "skip"};
  return kNames;
}

// When they are refused, the rest of the input is read for more of them, so that one call names
// them all.
class DocumentFaults {
 public:
  // `count` were left out before.
  DocumentFaults(BadText rule, int64_t count) : rule_(rule), count_(count) {}

  // Takes a document of `file`. Logs the first ones that are left out.
  void add(const std::filesystem::path& file, const Document& document);
  int64_t count() const { return count_; }
  // Whether nothing is to be written any more.
  bool ended() const { return count_ > 0 && rule_ == BadText::kRefuse; }
  // Throws DataError with the faults if they are refused. Otherwise logs how many were left out, of
  // so many documents, by kind.
  void finish(int64_t documents) const;
  // Throws DataError if more was left out than `most`, a share of the documents.
  void require_few(int64_t documents, double most) const;

 private:
  double share_of(int64_t documents) const;
  std::string sum(int64_t documents) const;

  const BadText rule_;
  std::vector<std::string> named_;
  std::vector<int64_t> of_kind_ = std::vector<int64_t>(fault_names().size());
  int64_t count_;
};

}  // namespace farstep
