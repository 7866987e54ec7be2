#include "wan/membership/records.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <fstream>
#include <span>
#include <string_view>

#include "trainer/base/checksum.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"

namespace farstep::wan {

namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "events.jsonl";
// Of one site; a run of years has less. A site that goes wild must not fill the coordinator's disk.
constexpr int64_t kMostFileBytes = int64_t{8} << 30;

// Returns the checksum of a text's first line; empty if it has none.
std::string head_of(std::string_view text) {
  const auto end = text.find('\n');
  if (end == text.npos) return "";
  return checksum_text(checksum(std::as_bytes(std::span(text.data(), end))));
}

// Returns the bytes of `file` from `begin` on, at most `most`; fewer at its end or if it cannot be
// read.
std::string bytes_of(const fs::path& file, int64_t begin, std::size_t most) {
  std::string bytes(most, '\0');
  std::ifstream in(file, std::ios::binary);
  in.seekg(begin);
  in.read(bytes.data(), static_cast<std::streamsize>(most));
  bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  return bytes;
}

// A name becomes a folder's.
bool is_folder_name(const std::string& site) {
  return !site.empty() && site.front() != '.' && site.find('/') == site.npos &&
         site.find('\0') == site.npos;
}

}  // namespace

std::optional<RecordsMessage> RecordsReader::next(const RecordsState& state) {
  if (state.bytes < 0) return std::nullopt;
  if (head_.empty()) head_ = head_of(bytes_of(file_, 0, kMostRecordBytes));
  std::error_code error;
  const auto size = static_cast<int64_t>(fs::file_size(file_, error));
  if (error) return std::nullopt;
  // What the coordinator has is of another file, if that was longer or began otherwise.
  const bool is_same = state.head == head_ && state.bytes <= size;
  RecordsMessage message{.position = is_same ? state.bytes : 0, .text = {}};
  message.text = bytes_of(file_, message.position, kMostRecordsBytes);
  auto end = message.text.rfind('\n');
  if (end == message.text.npos && message.text.size() == kMostRecordsBytes) {
    message.text = bytes_of(file_, message.position, kMostRecordBytes);
    end = message.text.find('\n');
    if (end == message.text.npos && message.text.size() == kMostRecordBytes && !has_warned_) {
      has_warned_ = true;
      spdlog::warn(
          "{}: the line at byte {} is longer than {} bytes; the coordinator gets no record "
          "from there on, and its page shows none",
          file_.string(), message.position, kMostRecordBytes);
    }
  }
  // A line that is being written comes with the next piece.
  if (end == message.text.npos) return std::nullopt;
  message.text.resize(end + 1);
  return message;
}

RecordsState RecordsFolder::state(const std::string& site) {
  const auto* copy = copy_of(site);
  return copy == nullptr ? RecordsState{} : copy->state;
}

void RecordsFolder::take(const std::string& site, const RecordsMessage& message) {
  auto* copy = copy_of(site);
  if (copy == nullptr || copy->state.bytes < 0) return;
  const auto fault = write(*copy, message);
  if (fault.empty()) return;
  spdlog::warn("{}: {}; the records of {} are not copied any more", copy->file.string(), fault,
               site);
  copy->state.bytes = -1;
}

std::string RecordsFolder::write(Copy& copy, const RecordsMessage& message) {
  const auto& text = message.text;
  if (!text.ends_with('\n') || text.size() > kMostRecordBytes) {
    return "a piece came that is not of whole lines, or too large";
  }
  auto& state = copy.state;
  const bool is_other_file = message.position == 0 && head_of(text) != state.head;
  if (message.position > state.bytes) return "";
  const int64_t known = is_other_file ? 0 : state.bytes - message.position;
  if (known >= static_cast<int64_t>(text.size())) return "";
  const auto news = std::string_view(text).substr(static_cast<std::size_t>(known));
  // A late piece of a file that has been replaced would leave half a line.
  if (known > 0 && text[static_cast<std::size_t>(known) - 1] != '\n') return "";
  const auto bytes = (is_other_file ? 0 : state.bytes) + static_cast<int64_t>(news.size());
  if (bytes > kMostFileBytes) return "is too large";
  std::ofstream out(copy.file,
                    std::ios::binary | (is_other_file ? std::ios::trunc : std::ios::app));
  out << news << std::flush;
  if (!out) return "cannot be written";
  state.bytes = bytes;
  if (is_other_file) state.head = head_of(text);
  return "";
}

// A coordinator that was killed may have left half a line, which is dropped.
RecordsFolder::Copy* RecordsFolder::copy_of(const std::string& site) {
  if (folder_.empty() || !is_folder_name(site)) return nullptr;
  const auto found = copies_.find(site);
  if (found != copies_.end()) return &found->second;
  auto& copy = copies_[site];
  copy.file = folder_ / site / kFile;
  try {
    make_folder(copy.file.parent_path());
    std::error_code absent;
    auto size = static_cast<int64_t>(fs::file_size(copy.file, absent));
    if (absent) size = 0;
    const auto tail_begin = std::max<int64_t>(0, size - static_cast<int64_t>(kMostRecordBytes));
    const auto tail = bytes_of(copy.file, tail_begin, kMostRecordBytes);
    const auto end = tail.rfind('\n');
    // Without a line's end in so much of it, the file is no copy of ours.
    const int64_t whole = end == tail.npos ? 0 : tail_begin + static_cast<int64_t>(end) + 1;
    if (whole < size) fs::resize_file(copy.file, static_cast<std::uintmax_t>(whole));
    copy.state = {.bytes = whole, .head = head_of(bytes_of(copy.file, 0, kMostRecordBytes))};
  } catch (const std::exception& error) {
    spdlog::warn("the records of {} are not copied: {}", site, error.what());
  }
  return &copy;
}

}  // namespace farstep::wan
