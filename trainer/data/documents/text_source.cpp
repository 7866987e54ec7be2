// A file of JSON lines is streamed, a document at a time, and so is a Parquet file. A text is one
// document, and is read whole.
#include "trainer/data/documents/text_source.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/stopped.h"
#include "trainer/data/documents/json_line.h"
#include "trainer/data/text/utf8.h"

namespace farstep {

namespace {

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

// Faults name the line, because such files are too large to search by hand.
Document document_of_line(int64_t number, const std::string& text, const std::string& field) {
  const auto refused = [&](TextFault fault, const std::string& what) {
    return Document{"", fault, fmt::format("line {}: {}", number, what)};
  };
  const JsonLine line(text);
  if (const auto place = line.fault()) {
    if (*place == text.size()) return refused(TextFault::kCutShort, "JSON that is cut short");
    return refused(TextFault::kNotJson, fmt::format("not JSON at character {}", *place + 1));
  }
  if (line.type() != JsonType::kObject) return refused(TextFault::kNoObject, "not a JSON object");
  const auto member = line.member(field);
  if (member.type == JsonType::kMissing) {
    return refused(TextFault::kNoMember, fmt::format("has no member \"{}\"", field));
  }
  if (member.type != JsonType::kString) {
    return refused(TextFault::kNoString,
                   fmt::format("member \"{}\" is {}, not a string", field, name_of(member.type)));
  }
  auto found = text_of(member);
  if (const auto valid = valid_utf8_bytes(found); valid < found.size()) {
    return refused(TextFault::kNotUtf8,
                   fmt::format("member \"{}\" is not UTF-8 at its byte {}", field, valid));
  }
  return {std::move(found), TextFault::kNone, ""};
}

// Text in another encoding, an image or a program must not become tokens without notice.
Document plain_document(std::string text) {
  const auto valid = valid_utf8_bytes(text);
  if (valid < text.size()) {
    return {"", TextFault::kNotUtf8,
            fmt::format("byte {}: not UTF-8 text; convert it, or leave the file out", valid)};
  }
  if (const auto zero = text.find('\0'); zero != std::string::npos) {
    return {"", TextFault::kBinary,
            fmt::format("byte {}: a byte of 0, so no text; leave the file out", zero)};
  }
  return {std::move(text), TextFault::kNone, ""};
}

}  // namespace

std::span<const std::string_view> fault_names() {
  static constexpr std::string_view kNames[] = {"none",
                                                "not JSON",
                                                "JSON that is cut short",
                                                "not a JSON object",
                                                "without the text's member or column",
                                                "whose text is no string",
                                                "not UTF-8",
                                                "with bytes of 0"};
  return kNames;
}

int64_t count_documents(const std::filesystem::path& path, FileKind kind,
                        const std::stop_token& stop) {
  if (kind == FileKind::kParquet) return ParquetText::count_rows(path);
  constexpr int64_t kMost = 10'000;  // between two looks at `stop`
  TextSource source(path, kind);
  int64_t count = 0, skipped = 0;
  do {
    throw_if_stopped(stop);
    count += skipped = source.skip(kMost);
  } while (skipped == kMost);
  return count;
}

TextSource::TextSource(const std::filesystem::path& path, FileKind kind, std::string field)
    : path_(path), kind_(kind), field_(std::move(field)) {
  if (kind == FileKind::kParquet) {
    table_.emplace(path, field_);
  } else {
    text_.emplace(path);
  }
}

std::optional<Document> TextSource::next() {
  if (table_) return next_row();
  if (kind_ == FileKind::kJsonLines) {
    const auto line = next_line();
    return line ? std::optional(document_of_line(line_, *line, field_)) : std::nullopt;
  }
  if (text_->at_end()) return std::nullopt;
  return plain_document(text_->rest());
}

// Counts documents without parsing JSON, so that counting takes a fraction of the time of reading.
int64_t TextSource::skip(int64_t most) {
  if (table_) return table_->skip(most);
  int64_t skipped = 0;
  while (skipped < most &&
         (kind_ == FileKind::kJsonLines ? next_line().has_value() : !text_->rest().empty())) {
    ++skipped;
  }
  return skipped;
}

int64_t TextSource::file_bytes_read() const {
  if (table_) {  // a column's pages lie all over the file, so by rows
    std::error_code none;
    return static_cast<int64_t>(static_cast<double>(std::filesystem::file_size(path_, none)) *
                                static_cast<double>(table_->next_row()) /
                                static_cast<double>(std::max<int64_t>(1, table_->num_rows())));
  }
  return text_->file_offset();
}

// Blank lines are skipped.
std::optional<std::string> TextSource::next_line() {
  while (auto line = text_->line()) {
    ++line_;
    if (!is_blank(*line)) return line;
  }
  return std::nullopt;
}

// Rows are numbered as Python's libraries do it.
std::optional<Document> TextSource::next_row() {
  const int64_t row = table_->next_row();
  std::optional<std::string> bytes;
  if (!table_->next(bytes)) return std::nullopt;
  if (!bytes) {
    return Document{"", TextFault::kNoString,
                    fmt::format("row {} (from 0): has no text in column \"{}\"", row, field_)};
  }
  if (const auto valid = valid_utf8_bytes(*bytes); valid < bytes->size()) {
    return Document{"", TextFault::kNotUtf8,
                    fmt::format("row {} (from 0): byte {}: not UTF-8 text", row, valid)};
  }
  return Document{std::move(*bytes), TextFault::kNone, ""};
}

}  // namespace farstep
