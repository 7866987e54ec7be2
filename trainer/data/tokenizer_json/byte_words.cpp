#include "trainer/data/tokenizer_json/byte_words.h"

#include "trainer/base/error.h"
#include "trainer/data/text/utf8.h"

namespace farstep {

namespace {

constexpr int kLastCharacter = 0x143;  // of the 68 bytes that no printable character stands for

// Returns the byte of each character from U+0000 to kLastCharacter; -1 where it is none.
std::array<int, kLastCharacter + 1> bytes_of_characters() {
  std::array<int, kLastCharacter + 1> bytes{};
  bytes.fill(-1);
  std::size_t other = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte != 0xad);
    bytes[printable ? static_cast<std::size_t>(byte) : other++] = byte;
  }
  return bytes;
}

std::optional<std::string> mapped_bytes(const std::string& token) {
  static const auto kBytes = bytes_of_characters();
  std::string bytes;
  for (std::size_t place = 0; place < token.size(); place += character_bytes(token[place])) {
    const char32_t character = character_at(token, place);
    if (character >= kBytes.size() || kBytes[character] < 0) return std::nullopt;
    bytes += static_cast<char>(kBytes[character]);
  }
  return bytes;
}

}  // namespace

std::string bytes_of_token(const std::string& token) {
  return mapped_bytes(token).value_or(token);
}

ByteWords::ByteWords(const BytePairModel& model)
    : unknown_(model.unknown), fuses_unknown_(model.fuses_unknown) {
  bytes_.fill(-1);
  for (const auto& [token, id] : model.vocabulary) {
    const auto bytes = mapped_bytes(token);
    if (!bytes) continue;  // no word has such characters
    if (bytes->size() == 1) bytes_[static_cast<unsigned char>((*bytes)[0])] = id;
    if (model.ignores_merges) whole_.emplace(*bytes, id);
  }
  int32_t rank = 0;
  for (const auto& merge : model.merges) {
    merges_.set(merge.left, merge.right, {rank++, merge.merged});
  }
}

void ByteWords::encode(std::string_view word, WordCache& cache, std::vector<int32_t>& ids) const {
  cache.append(word, ids, [&](std::vector<int32_t>& fresh) { encode_new(word, fresh); });
}

void ByteWords::encode_new(std::string_view word, std::vector<int32_t>& ids) const {
  if (!whole_.empty()) {
    if (const auto found = whole_.find(std::string(word)); found != whole_.end()) {
      ids.push_back(found->second);
      return;
    }
  }
  bool after_unknown = false;
  for (const char byte : word) {
    const int32_t id = bytes_[static_cast<unsigned char>(byte)];
    if (id < 0 && !unknown_) {
      throw DataError(
          fmt::format("the tokenizer has no token for the byte 0x{:02X}, and none for the "
                      "unknown; take another tokenizer, or leave that byte out of the text",
                      static_cast<unsigned char>(byte)));
    }
    if (id >= 0 || !after_unknown || !fuses_unknown_) ids.push_back(id < 0 ? *unknown_ : id);
    after_unknown = id < 0;
  }
  merges_.apply(ids);
}

}  // namespace farstep
