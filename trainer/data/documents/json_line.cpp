// A parser of a library would refuse what Python takes, or keep what nobody wants. A line is passed
// over once, with the open objects and lists in a stack of its own, so that no line is too deep.
#include "trainer/data/documents/json_line.h"

#include <algorithm>

#include "trainer/base/error.h"
#include "trainer/data/text/utf8.h"

namespace farstep {

namespace {

constexpr char32_t kReplacement = 0xfffd;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

JsonType type_at(char first) {
  switch (first) {
    case '{':
      return JsonType::kObject;
    case '[':
      return JsonType::kList;
    case '"':
      return JsonType::kString;
    case 'n':
      return JsonType::kNull;
    case 't':
    case 'f':
      return JsonType::kBoolean;
    default:
      return JsonType::kNumber;
  }
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

// Returns the number of four hexadecimal digits; nullopt if they are not there.
std::optional<char32_t> hexadecimal(std::string_view digits) {
  if (digits.size() < 4) return std::nullopt;
  char32_t number = 0;
  for (const char c : digits.substr(0, 4)) {
    const auto digit = std::string_view("0123456789abcdef").find(lower(c));
    if (digit == std::string_view::npos) return std::nullopt;
    number = number << 4 | static_cast<char32_t>(digit);
  }
  return number;
}

// Passes over JSON. Each function returns false at a fault, which is then at place().
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::size_t place() const { return place_; }
  bool at_end() const { return place_ == text_.size(); }

  void pass_space() {
    while (!at_end() && (text_[place_] == ' ' || text_[place_] == '\t' || text_[place_] == '\n' ||
                         text_[place_] == '\r')) {
      ++place_;
    }
  }

  bool take(char c) {
    if (at_end() || text_[place_] != c) return false;
    ++place_;
    return true;
  }

  // Passes the name of a member with its colon; `name` is what stands between the quotes.
  bool pass_name(std::string_view& name) {
    pass_space();
    const auto begin = place_;
    if (!pass_string()) return false;
    name = text_.substr(begin + 1, place_ - begin - 2);
    pass_space();
    return take(':');
  }

  // Passes any value, with the white space before it.
  bool pass_value(JsonValue& value) {
    pass_space();
    if (at_end()) return false;
    const auto begin = place_;
    value.type = type_at(text_[place_]);
    if (!pass_nested()) return false;
    value.raw = text_.substr(begin, place_ - begin);
    return true;
  }

 private:
  bool pass_nested() {
    std::string_view name;
    open_.clear();
    while (true) {
      pass_space();
      if (at_end()) return false;
      const char first = text_[place_];
      if (first == '{' || first == '[') {
        ++place_;
        pass_space();
        if (!take(first == '{' ? '}' : ']')) {
          open_ += first;
          if (first == '{' && !pass_name(name)) return false;
          continue;
        }
      } else if (!(first == '"' ? pass_string() : pass_plain())) {
        return false;
      }
      // A value has ended, and with it perhaps those around it.
      while (true) {
        if (open_.empty()) return true;
        const bool in_object = open_.back() == '{';
        pass_space();
        if (take(',')) {
          if (in_object && !pass_name(name)) return false;
          break;
        }
        if (!take(in_object ? '}' : ']')) return false;
        open_.pop_back();
      }
    }
  }

  bool pass_string() {
    if (!take('"')) return false;
    while (!at_end()) {
      const char c = text_[place_];
      if (static_cast<unsigned char>(c) < 0x20) return false;
      ++place_;
      if (c == '"') return true;
      if (c != '\\') continue;
      if (at_end()) return false;
      const char kind = text_[place_++];
      if (kind == 'u') {
        if (!hexadecimal(text_.substr(place_))) {
          // What is cut short ends at the end, and not at what is there of it.
          if (text_.find_first_not_of("0123456789abcdefABCDEF", place_) == text_.npos) {
            place_ = text_.size();
          }
          return false;
        }
        place_ += 4;
      } else if (std::string_view("\"\\/bfnrt").find(kind) == std::string_view::npos) {
        return false;
      }
    }
    return false;
  }

  bool pass_plain() {
    for (const std::string_view word : {"null", "true", "false", "NaN", "Infinity", "-Infinity"}) {
      const auto rest = text_.substr(place_, word.size());
      if (rest == word) {
        place_ += word.size();
        return true;
      }
      // Of a minus the digits may follow.
      if (!rest.empty() && rest != "-" && rest.size() < word.size() && word.starts_with(rest)) {
        place_ = text_.size();
        return false;
      }
    }
    take('-');
    if (!take('0') && !pass_digits()) return false;
    const auto whole = place_;
    if (take('.') && !pass_digits()) return at_end() ? false : back_to(whole);
    const auto mantissa = place_;
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      if (!pass_digits()) return at_end() ? false : back_to(mantissa);
    }
    return true;
  }

  // What follows is no part of the number, as Python sees it, and no comma either.
  bool back_to(std::size_t place) {
    place_ = place;
    return true;
  }

  bool pass_digits() {
    const auto begin = place_;
    while (!at_end() && is_digit(text_[place_])) ++place_;
    return place_ > begin;
  }

  std::string_view text_;
  std::size_t place_ = 0;
  std::string open_;  // the brackets that are open
};

// Returns what a string stands for that has been passed, without its quotes.
std::string decoded(std::string_view written) {
  constexpr auto kIsHigh = [](char32_t unit) { return unit >= 0xd800 && unit < 0xdc00; };
  constexpr auto kIsLow = [](char32_t unit) { return unit >= 0xdc00 && unit < 0xe000; };
  std::string text;
  while (true) {
    const auto plain = std::min(written.find('\\'), written.size());
    text += written.substr(0, plain);
    written.remove_prefix(plain);
    if (written.empty()) return text;
    const char kind = written[1];
    written.remove_prefix(2);
    if (kind != 'u') {
      constexpr std::string_view kWritten = "bfnrt", kMeant = "\b\f\n\r\t";
      const auto place = kWritten.find(kind);
      text += place == kWritten.npos ? kind : kMeant[place];
      continue;
    }
    char32_t character = *hexadecimal(written);
    written.remove_prefix(4);
    if (kIsHigh(character) && written.starts_with("\\u")) {
      if (const auto low = *hexadecimal(written.substr(2)); kIsLow(low)) {
        character = 0x10000 + ((character - 0xd800) << 10 | (low - 0xdc00));
        written.remove_prefix(6);
      }
    }
    append_character(text, kIsHigh(character) || kIsLow(character) ? kReplacement : character);
  }
}

}  // namespace

std::string_view name_of(JsonType type) {
  switch (type) {
    case JsonType::kMissing:
      return "missing";
    case JsonType::kNull:
      return "null";
    case JsonType::kBoolean:
      return "true or false";
    case JsonType::kNumber:
      return "a number";
    case JsonType::kString:
      return "a string";
    case JsonType::kList:
      return "a list";
    case JsonType::kObject:
      return "an object";
  }
  throw InternalError("unknown type of JSON");
}

JsonLine::JsonLine(std::string_view line) {
  Scanner scanner(line);
  const auto read = [&] {
    scanner.pass_space();
    JsonValue value;
    if (!scanner.take('{')) {
      if (!scanner.pass_value(value)) return false;
      type_ = value.type;
    } else {
      type_ = JsonType::kObject;
      scanner.pass_space();
      for (bool ended = scanner.take('}'); !ended; ended = scanner.take('}')) {
        std::string_view name;
        if (!members_.empty() && !scanner.take(',')) return false;
        if (!scanner.pass_name(name) || !scanner.pass_value(value)) return false;
        members_.emplace_back(name, value);
        scanner.pass_space();
      }
    }
    scanner.pass_space();
    return scanner.at_end();
  };
  if (!read()) fault_ = scanner.place();
}

JsonValue JsonLine::member(std::string_view name) const {
  for (auto member = members_.rbegin(); member != members_.rend(); ++member) {
    const auto& written = member->first;
    // Nearly all names are written as they are.
    if (written == name) return member->second;
    if (written.find('\\') != written.npos && decoded(written) == name) return member->second;
  }
  return {};
}

std::string text_of(const JsonValue& value) {
  return decoded(value.raw.substr(1, value.raw.size() - 2));
}

std::vector<JsonValue> elements_of(const JsonValue& list) {
  std::vector<JsonValue> elements;
  Scanner scanner(list.raw);
  scanner.take('[');
  scanner.pass_space();
  for (bool ended = scanner.take(']'); !ended; ended = scanner.take(']')) {
    if (!elements.empty()) scanner.take(',');
    FARSTEP_CHECK(scanner.pass_value(elements.emplace_back()), "a list has been read before");
    scanner.pass_space();
  }
  return elements;
}

}  // namespace farstep
