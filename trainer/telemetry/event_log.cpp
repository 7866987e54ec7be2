#include "trainer/telemetry/event_log.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "trainer/base/error.h"
#include "trainer/base/system/file.h"

namespace farstep {

namespace {

// A few thousand records at once: more take memory, and fewer take no less time.
constexpr std::size_t kPieceBytes = 1 << 20;

// Parses the complete lines of `text`, which begins with line `first_line`. Returns their bytes.
std::size_t parse_lines(std::string_view text, const std::string& file, int64_t first_line,
                        std::vector<Record>& into) {
  std::size_t begin = 0;
  for (auto end = text.find('\n'); end != text.npos; end = text.find('\n', begin)) {
    into.push_back(parse_record(text.substr(begin, end - begin), file, first_line++));
    begin = end + 1;
  }
  return begin;
}

std::string unfinished_note(const std::filesystem::path& file, std::size_t bytes) {
  if (bytes == 0) return "";
  return fmt::format("{}: the last line is unfinished and was left out ({} bytes)", file.string(),
                     bytes);
}

}  // namespace

EventLog read_event_log(const std::filesystem::path& file) {
  const std::string text = read_file(file);
  EventLog log;
  const auto parsed_bytes = parse_lines(text, file.string(), 1, log.records);
  log.note = unfinished_note(file, text.size() - parsed_bytes);
  return log;
}

std::vector<Record> EventFollower::poll() {
  auto records = poll_some();
  for (auto more = poll_some(); !more.empty(); more = poll_some()) {
    std::ranges::move(more, std::back_inserter(records));
  }
  return records;
}

// A line that is being written is read again when it is whole, and one that is longer than a piece
// is read again with a longer piece.
std::vector<Record> EventFollower::poll_some() {
  std::vector<Record> records;
  for (std::size_t most = kPieceBytes;; most *= 2) {
    const auto text = read_next(most);
    const auto parsed_bytes = parse_lines(text, file_.string(), read_lines_ + 1, records);
    if (parsed_bytes == 0 && text.size() == most) continue;
    read_bytes_ += parsed_bytes;
    read_lines_ += static_cast<int64_t>(records.size());
    unfinished_bytes_ = text.size() - parsed_bytes;
    return records;
  }
}

void EventFollower::skip() {
  for (std::size_t most = kPieceBytes;;) {
    const auto text = read_next(most);
    const auto end = text.rfind('\n');
    if (end == text.npos) {
      if (text.size() < most) return;
      most *= 2;
      continue;
    }
    read_bytes_ += end + 1;
    read_lines_ += std::ranges::count(text, '\n');
  }
}

std::string EventFollower::read_next(std::size_t most) const {
  std::error_code error;
  const auto size = std::filesystem::file_size(file_, error);
  if (error == std::errc::no_such_file_or_directory && read_bytes_ == 0) return "";
  // A shorter file was replaced: what was read of it belongs to another run.
  if (error || size < read_bytes_) {
    throw DataError(fmt::format("{}: {}", file_.string(),
                                error ? error.message() : "became shorter while it was followed"));
  }
  if (size == read_bytes_) return "";
  std::ifstream in(file_, std::ios::binary);
  std::string text(std::min<std::uintmax_t>(size - read_bytes_, most), '\0');
  if (!in.seekg(static_cast<std::streamoff>(read_bytes_))) {
    throw DataError(fmt::format("{}: cannot be read", file_.string()));
  }
  // Fewer bytes may come: a restarted site removes the line that its predecessor left unfinished.
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

std::string EventFollower::note() const {
  return unfinished_note(file_, unfinished_bytes_);
}

}  // namespace farstep
