// What one look at a site found: a value that a terminal shows as a line, and a program as JSON.
// Pure functions; thread-safe.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "trainer/base/error.h"
#include "trainer/config/json_fields.h"

namespace farstep {

// `later`: it needs what is not known yet. A warning is worth a look, and the run can begin.
enum class Grade { kOk, kLater, kWarning, kFault };
inline std::span<const std::string_view> enum_names(Grade) {
  static constexpr std::array<std::string_view, 4> kNames{"ok", "later", "warning", "fault"};
  return kNames;
}

struct Finding {
  std::string subject;
  Grade grade = Grade::kOk;
  std::string text;   // what was found; of a warning or a fault also what to do
  int exit_code = 0;  // of a fault; see exit_codes()
  Json figures = {};  // those in the text, for programs

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("subject", subject, "what was looked at");
    visit("grade", grade, "how it is");
    visit("text", text, "what was found, and what to do");
    visit("exit_code", exit_code, "the exit code of such a fault; 0 of what is none");
    visit("figures", figures, "the figures in the text, where a program may want them; else null");
  }
};

// Receives each finding as soon as it is known.
using Tell = std::function<void(const Finding&)>;

Finding ok(std::string subject, std::string text);
Finding warning(std::string subject, std::string text);
// A fault whose kind decides the exit code.
Finding fault(std::string subject, ErrorKind kind, std::string text);
Finding fault_of(std::string subject, const Error& error);

// Returns what `look` returns, or the fault that it throws.
template <typename Look>
Finding finding_of(const std::string& subject, Look&& look) {
  try {
    return look();
  } catch (const Error& error) {
    return fault_of(subject, error);
  }
}

// Returns "ok       memory       0.1 GB ...", without a line feed.
std::string line_of(const Finding& finding);

// Returns the exit code of the worst fault; 0 if there is none. A bug is worse than a wrong config,
// that is worse than a bad file, and all are worse than what a new start may mend.
int exit_code_of(std::span<const Finding> findings);

}  // namespace farstep
