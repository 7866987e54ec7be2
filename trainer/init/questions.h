// Questions on a terminal, one a line, each with the answer that an empty line stands for.
#pragma once

#include <functional>
#include <istream>
#include <ostream>
#include <string>

namespace farstep {

class Questions {
 public:
  // Returns why an answer cannot be taken; empty if it can.
  using Check = std::function<std::string(const std::string& answer)>;

  // Both streams must outlive it.
  Questions(std::istream& answers, std::ostream& screen) : answers_(answers), screen_(screen) {}

  // Asks until an answer passes `check`. An empty line is `fallback`; if that is empty too, and not
  // `may_be_empty`, it asks again. Throws ConfigError if the input ends.
  std::string ask(const std::string& question, const std::string& fallback,
                  bool may_be_empty = false, const Check& check = {});
  // Asks for yes or no.
  bool ask_yes(const std::string& question, bool fallback);

 private:
  std::istream& answers_;
  std::ostream& screen_;
};

}  // namespace farstep
