// Multiple-choice questions in HellaSwag's form (Zellers et al. 2019): a JSON object a line, with a
// context `ctx`, some `endings`, and in `label` the number of the right one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace farstep {

struct Question {
  std::string context;
  std::vector<std::string> endings;  // two or more, none empty
  std::size_t right = 0;
};

// Reads a file of questions, at least one. Other members of a line are left alone, and so are empty
// lines. Throws DataError that names file, line and member.
std::vector<Question> read_questions(const std::filesystem::path& file);

}  // namespace farstep
