// A token's text depends on the token before: SentencePiece drops the space that begins a text. So
// ids are decoded with and without the new ones, and the difference is the new text. Only the last
// few ids take part, or the cost would grow with the text.
#include "trainer/model/language/streamed_text.h"

#include <algorithm>
#include <utility>

namespace farstep {

namespace {

constexpr std::size_t kContext = 8;                     // ids; a character has 4 bytes at most
constexpr std::string_view kReplaced = "\xEF\xBF\xBD";  // U+FFFD: bytes of an unfinished character

// The length of the longest end of `text` that begins `stop`.
std::size_t overlap(const std::string& text, const std::string& stop) {
  for (auto length = std::min(text.size(), stop.size()); length > 0; --length) {
    if (text.ends_with(std::string_view(stop).substr(0, length))) return length;
  }
  return 0;
}

}  // namespace

StreamedText::StreamedText(Decode decode, std::vector<int32_t> before,
                           std::vector<std::string> stops)
    : decode_(std::move(decode)),
      stops_(std::move(stops)),
      ids_(std::move(before)),
      certain_(ids_.size()) {
  if (certain_ > kContext) {
    ids_.erase(ids_.begin(), ids_.end() - kContext);
    certain_ = kContext;
  }
}

// Moves the text of the new ids to `held_`, unless it ends in the middle of a character. A text
// that really has U+FFFD at its end comes a token later.
void StreamedText::decode_new() {
  const auto text = decode_(ids_);
  if (text.ends_with(kReplaced)) return;
  const auto known = decode_(std::span(ids_).first(certain_));
  if (text.size() > known.size()) held_ += text.substr(known.size());
  if (ids_.size() > kContext) ids_.erase(ids_.begin(), ids_.end() - kContext);
  certain_ = ids_.size();
}

std::string StreamedText::take(std::size_t bytes) {
  auto text = held_.substr(0, bytes);
  held_.erase(0, bytes);
  return text;
}

std::string StreamedText::add(int32_t id) {
  ids_.push_back(id);
  decode_new();
  auto place = std::string::npos;
  std::size_t held_back = 0;
  for (const auto& stop : stops_) {
    place = std::min(place, held_.find(stop));
    held_back = std::max(held_back, overlap(held_, stop));
  }
  if (place == std::string::npos) return take(held_.size() - held_back);
  stopped_ = true;
  auto text = take(place);
  held_.clear();
  return text;
}

std::string StreamedText::finish() {
  if (stopped_) return "";
  const auto text = decode_(ids_);
  const auto known = decode_(std::span(ids_).first(certain_));
  if (text.size() > known.size()) held_ += text.substr(known.size());
  certain_ = ids_.size();
  return take(held_.size());
}

}  // namespace farstep
