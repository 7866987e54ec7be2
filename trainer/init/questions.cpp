#include "trainer/init/questions.h"

#include "trainer/base/error.h"

namespace farstep {

std::string Questions::ask(const std::string& question, const std::string& fallback,
                           bool may_be_empty, const Check& check) {
  while (true) {
    screen_ << question;
    if (!fallback.empty()) screen_ << " [" << fallback << "]";
    screen_ << ": " << std::flush;
    std::string answer;
    if (!std::getline(answers_, answer)) {
      throw ConfigError("farstep init: the input ended before all questions were answered");
    }
    const auto begin = answer.find_first_not_of(" \t\r");
    const auto end = answer.find_last_not_of(" \t\r");
    answer = begin == std::string::npos ? fallback : answer.substr(begin, end - begin + 1);
    if (answer.empty() && !may_be_empty) continue;
    const auto objection = check && !answer.empty() ? check(answer) : "";
    if (objection.empty()) return answer;
    screen_ << "  " << objection << "\n";
  }
}

bool Questions::ask_yes(const std::string& question, bool fallback) {
  const auto is_yes = [](const std::string& answer) { return answer == "yes" || answer == "y"; };
  const auto answer = ask(question + " (yes or no)", fallback ? "yes" : "no", false,
                          [&](const std::string& text) -> std::string {
                            if (is_yes(text) || text == "no" || text == "n") return "";
                            return "answer yes or no";
                          });
  return is_yes(answer);
}

}  // namespace farstep
