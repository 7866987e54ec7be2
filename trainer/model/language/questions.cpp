#include "trainer/model/language/questions.h"

#include <fmt/format.h>

#include <charconv>
#include <sstream>

#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/config/strict_json.h"

namespace farstep {

namespace {

// Reads one line; throws DataError that begins with `place`.
class QuestionReader {
 public:
  QuestionReader(const std::string& line, std::string place) : place_(std::move(place)) {
    json_ = parse_if_json(line, place_ + "the object").value_or(nullptr);
    if (!json_.is_object()) fail("is no JSON object");
  }

  Question read() const {
    Question question;
    question.context = text(member("ctx"), "ctx");
    const auto& endings = member("endings");
    if (!endings.is_array() || endings.size() < 2) fail("endings: must be a list of two or more");
    for (const auto& ending : endings) {
      question.endings.push_back(text(ending, "endings"));
      if (question.endings.back().empty()) fail("endings: one is empty");
    }
    question.right = label();
    if (question.right >= endings.size()) {
      fail(fmt::format("label: is {}, but there are {} endings; must be the number of one, from 0",
                       question.right, endings.size()));
    }
    return question;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw DataError(place_ + what); }

  const Json& member(const char* name) const {
    const auto found = json_.find(name);
    if (found == json_.end()) fail(fmt::format("{}: is missing", name));
    return *found;
  }

  std::string text(const Json& json, const char* name) const {
    if (!json.is_string()) fail(fmt::format("{}: must be text", name));
    return json.get<std::string>();
  }

  // HellaSwag's own files have a number, copies of them have it as text.
  std::size_t label() const {
    const auto& json = member("label");
    if (json.is_number_unsigned()) return json.get<std::size_t>();
    std::size_t number = 0;
    if (json.is_string()) {
      const auto& text = json.get_ref<const std::string&>();
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
      if (error == std::errc() && end == text.data() + text.size()) return number;
    }
    fail("label: must be the number of the right ending, from 0; files of a test have none");
  }

  Json json_;
  const std::string place_;
};

}  // namespace

std::vector<Question> read_questions(const std::filesystem::path& file) {
  std::istringstream lines(read_file(file));
  std::vector<Question> questions;
  std::string line;
  for (int64_t number = 1; std::getline(lines, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    questions.push_back(
        QuestionReader(line, fmt::format("{}: line {}: ", file.string(), number)).read());
  }
  if (questions.empty()) throw DataError(file.string() + ": has no questions");
  return questions;
}

}  // namespace farstep
