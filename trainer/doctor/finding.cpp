#include "trainer/doctor/finding.h"

#include <utility>

namespace farstep {

Finding ok(std::string subject, std::string text) {
  return {std::move(subject), Grade::kOk, std::move(text), 0};
}

Finding warning(std::string subject, std::string text) {
  return {std::move(subject), Grade::kWarning, std::move(text), 0};
}

Finding fault(std::string subject, ErrorKind kind, std::string text) {
  return {std::move(subject), Grade::kFault, std::move(text), static_cast<int>(kind)};
}

Finding fault_of(std::string subject, const Error& error) {
  return fault(std::move(subject), error.kind(), error.what());
}

std::string line_of(const Finding& finding) {
  return fmt::format("{:<8} {:<12} {}", name_of(finding.grade), finding.subject, finding.text);
}

// The codes of the kinds ascend from the worst on.
int exit_code_of(std::span<const Finding> findings) {
  int worst = 0;
  for (const auto& finding : findings) {
    if (finding.grade != Grade::kFault) continue;
    if (worst == 0 || finding.exit_code < worst) worst = finding.exit_code;
  }
  return worst;
}

}  // namespace farstep
