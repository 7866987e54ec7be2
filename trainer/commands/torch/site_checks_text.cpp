#include "trainer/commands/torch/site_checks_text.h"

#include <fmt/format.h>

#include "trainer/run/site_checks.h"

namespace farstep {

std::string site_checks_text(const std::string& title) {
  std::string text = title + "\n";
  for (const auto& check : site_checks()) {
    text += fmt::format("  {:<12} {}\n", check.name, check.subject);
  }
  return text;
}

}  // namespace farstep
