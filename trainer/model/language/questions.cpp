#include "trainer/model/language/questions.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/data/documents/byte_reader.h"
#include "trainer/data/documents/file_kind.h"
#include "trainer/data/documents/json_line.h"
#include "trainer/data/text/utf8.h"

namespace farstep {

namespace {

// Reads one line; throws DataError that begins with `place`.
class QuestionReader {
 public:
  QuestionReader(const std::string& line, std::string place)
      : place_(std::move(place)), line_(line) {
    if (line_.fault() || line_.type() != JsonType::kObject) fail("is no JSON object");
  }

  Question read() const {
    Question question;
    question.context = text(member("ctx"), "ctx");
    const auto endings = member("endings");
    if (endings.type == JsonType::kList) {
      for (const auto& ending : elements_of(endings)) {
        question.endings.push_back(text(ending, "endings"));
        if (question.endings.back().empty()) fail("endings: one is empty");
      }
    }
    if (question.endings.size() < 2) fail("endings: must be a list of two or more");
    question.right = label();
    if (question.right >= question.endings.size()) {
      fail(fmt::format("label: is {}, but there are {} endings; must be the number of one, from 0",
                       question.right, question.endings.size()));
    }
    return question;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw DataError(place_ + what); }

  JsonValue member(const char* name) const {
    const auto found = line_.member(name);
    if (found.type == JsonType::kMissing) fail(fmt::format("{}: is missing", name));
    return found;
  }

  std::string text(const JsonValue& value, const char* name) const {
    if (value.type != JsonType::kString) fail(fmt::format("{}: must be text", name));
    auto found = text_of(value);
    if (valid_utf8_bytes(found) < found.size()) fail(fmt::format("{}: is not UTF-8", name));
    return found;
  }

  // HellaSwag's own files have a number, copies of them have it as text.
  std::size_t label() const {
    const auto value = member("label");
    const auto digits =
        value.type == JsonType::kString ? text(value, "label") : std::string(value.raw);
    std::size_t number = 0;
    const auto* const last = digits.data() + digits.size();
    const auto [end, error] = std::from_chars(digits.data(), last, number);
    if (error == std::errc() && end == last) return number;
    fail("label: must be the number of the right ending, from 0; files of a test have none");
  }

  const std::string place_;
  const JsonLine line_;
};

}  // namespace

std::vector<Question> read_questions(const std::filesystem::path& file) {
  const auto form = form_of(file);
  if (form.kind == FileKind::kParquet || (form.kind == FileKind::kUnknown && !form.may_be_text)) {
    throw DataError(fmt::format("{}: is {}, not lines of JSON", file.string(),
                                form.why.empty() ? name_of(form.kind) : form.why));
  }
  TextBuffer lines(file);
  std::vector<Question> questions;
  int64_t number = 0;
  while (const auto line = lines.line()) {
    ++number;
    if (line->find_first_not_of(" \t\r") == std::string::npos) continue;
    questions.push_back(
        QuestionReader(*line, fmt::format("{}: line {}: ", file.string(), number)).read());
  }
  if (questions.empty()) throw DataError(file.string() + ": has no questions");
  return questions;
}

}  // namespace farstep
