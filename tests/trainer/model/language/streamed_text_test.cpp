#include "trainer/model/language/streamed_text.h"

#include <random>

#include "tests/support/catch.h"

using namespace farstep;

namespace {

// Each byte is a token, and id 256 + b is a space followed by byte b that loses its space where it
// begins a text. Bytes that are no whole character become U+FFFD, one for each byte.
std::string decode(std::span<const int32_t> ids) {
  std::string bytes;
  for (const int32_t id : ids) {
    if (id >= 256 && !bytes.empty()) bytes += ' ';
    bytes += static_cast<char>(id % 256);
  }
  std::string text;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto first = static_cast<unsigned char>(bytes[at]);
    const std::size_t length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (first >= 0x80 && (first < 0xC0 || at + length > bytes.size())) {
      text += "\xEF\xBF\xBD";
      ++at;
    } else {
      text += bytes.substr(at, length);
      at += length;
    }
  }
  return text;
}

std::vector<int32_t> ids_of(std::string_view text) {
  std::vector<int32_t> ids;
  for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
  return ids;
}

struct Streamed {
  std::string text;
  bool stopped = false;
  std::size_t tokens = 0;
};

Streamed stream(const std::vector<int32_t>& before, const std::vector<int32_t>& ids,
                const std::vector<std::string>& stops = {}) {
  StreamedText text(decode, before, stops);
  Streamed all;
  for (const int32_t id : ids) {
    if (text.stopped()) break;
    ++all.tokens;
    const auto piece = text.add(id);
    CHECK(piece.find("\xEF\xBF\xBD") == std::string::npos);
    all.text += piece;
  }
  all.text += text.finish();
  all.stopped = text.stopped();
  return all;
}

const std::string kText = "a café, 東京, 😀\r\nand   so on. ";

}  // namespace

TEST_CASE("the pieces of a stream are the text") {
  CHECK(stream({}, ids_of(kText)).text == kText);
  CHECK(stream(ids_of("before "), ids_of(kText)).text == kText);
  CHECK(stream({}, {}).text.empty());
}

TEST_CASE("a character comes as a whole") {
  StreamedText text(decode, {}, {});
  CHECK(text.add(0xC3).empty());
  CHECK(text.add(0xA9) == "é");
  CHECK(text.add('x') == "x");
}

TEST_CASE("a token keeps the space that it has after others") {
  CHECK(stream({'a'}, {256 + 'b', 256 + 'c'}).text == " b c");
  CHECK(stream({}, {256 + 'b', 256 + 'c'}).text == "b c");
}

TEST_CASE("bytes of an unfinished character come at the end") {
  StreamedText text(decode, {}, {});
  CHECK(text.add('a') == "a");
  CHECK(text.add(0xF0).empty());
  CHECK(text.finish() == "\xEF\xBF\xBD");
}

TEST_CASE("a text ends before the first stop string, wherever its tokens end") {
  const auto ended = stream({}, ids_of("one. two. three"), {"tw", "three"});
  CHECK(ended.text == "one. ");
  CHECK(ended.stopped);
  CHECK(ended.tokens == 7);
  CHECK(stream({}, ids_of("abcabd!"), {"abd"}).text == "abc");
  CHECK(stream({}, ids_of("xé!"), {"é"}).text == "x");
  const auto whole = stream({}, ids_of("one, tw"), {"two"});
  CHECK(whole.text == "one, tw");
  CHECK_FALSE(whole.stopped);
}

TEST_CASE("random texts and stop strings give what a search in the whole text gives") {
  std::mt19937 random(7);
  for (int trial = 0; trial < 2000; ++trial) {
    std::string text, stop;
    for (auto left = random() % 40; left > 0; --left) text += static_cast<char>('a' + random() % 2);
    for (auto left = 1 + random() % 4; left > 0; --left)
      stop += static_cast<char>('a' + random() % 2);
    INFO(text << " until " << stop);
    const auto found = text.find(stop);
    const auto streamed = stream({}, ids_of(text), {stop});
    CHECK(streamed.text == text.substr(0, found));
    CHECK(streamed.stopped == (found != std::string::npos));
  }
}
