// A protocol buffer is a list of fields: a key with number and wire type, then the value. Fields
// that are not asked for are skipped.
#include "trainer/data/tokenizer/sentencepiece_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "trainer/data/text/utf8.h"

namespace farstep {

namespace {

// The value of a field: a number, or bytes that may be a message.
struct Field {
  uint64_t number = 0;
  uint64_t value = 0;
  std::string_view bytes;
};

class FieldReader {
 public:
  explicit FieldReader(std::string_view message) : rest_(message) {}

  // Returns the next field; nullopt at the end or at a fault.
  std::optional<Field> next() {
    if (rest_.empty() || failed_) return std::nullopt;
    const uint64_t key = varint();
    Field field{key >> 3, 0, {}};
    switch (key & 7) {
      case 0:
        field.value = varint();
        break;
      case 1:
        field.bytes = take(8);
        break;
      case 2:
        field.bytes = take(varint());
        break;
      case 5:
        field.bytes = take(4);
        break;
      default:
        failed_ = true;
    }
    return failed_ ? std::nullopt : std::optional(field);
  }
  bool failed() const { return failed_; }

 private:
  uint64_t varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) break;
      const auto byte = static_cast<unsigned char>(rest_[0]);
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    failed_ = true;
    return 0;
  }
  std::string_view take(uint64_t bytes) {
    if (failed_ || bytes > rest_.size()) {
      failed_ = true;
      return {};
    }
    const auto taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }

  std::string_view rest_;
  bool failed_ = false;
};

// Calls `take` with every field; returns false for a message with a fault.
template <typename Take>
bool for_each_field(std::string_view message, Take&& take) {
  FieldReader reader(message);
  while (const auto field = reader.next()) take(*field);
  return !reader.failed();
}

bool read_piece(std::string_view message, SentencePieceFile::Piece& piece) {
  return for_each_field(message, [&](const Field& field) {
    if (field.number == 1) piece.text = field.bytes;
    if (field.number == 2 && field.bytes.size() == sizeof(piece.score)) {
      std::memcpy(&piece.score, field.bytes.data(), sizeof(piece.score));
    }
    if (field.number == 3) piece.type = static_cast<PieceType>(field.value);
  });
}

static_assert(std::endian::native == std::endian::little, "scores are copied as they lie");

bool read_trainer(std::string_view message, SentencePieceFile& file) {
  return for_each_field(message, [&](const Field& field) {
    if (field.number == 3) file.model_type = static_cast<int64_t>(field.value);
    if (field.number == 24) file.whitespace_is_suffix = field.value != 0;
    if (field.number == 35) file.byte_fallback = field.value != 0;
  });
}

bool read_normalizer(std::string_view message, SentencePieceFile& file) {
  return for_each_field(message, [&](const Field& field) {
    if (field.number == 2) file.character_map = field.bytes;
    if (field.number == 3) file.adds_prefix = field.value != 0;
    if (field.number == 4) file.removes_whitespace = field.value != 0;
    if (field.number == 5) file.escapes_whitespace = field.value != 0;
  });
}

}  // namespace

bool is_one_character(const std::string& text) {
  return !text.empty() && text.size() == character_bytes(text[0]);
}

bool SentencePieceFile::is_plain() const {
  return is_byte_pairs() && character_map.empty() && !removes_whitespace && escapes_whitespace &&
         !whitespace_is_suffix && has_usual_pieces();
}

bool SentencePieceFile::has_usual_pieces() const {
  return std::all_of(pieces.begin(), pieces.end(), [](const Piece& piece) {
    const bool is_text = piece.type == PieceType::kNormal || piece.type == PieceType::kUserDefined;
    return piece.type != PieceType::kUnused && !std::isnan(piece.score) && !piece.text.empty() &&
           valid_utf8_bytes(piece.text) == piece.text.size() &&
           (is_text || !is_one_character(piece.text));
  });
}

std::optional<std::array<int32_t, 256>> SentencePieceFile::byte_ids() const {
  std::array<int32_t, 256> ids{};
  std::size_t found = 0;
  for (std::size_t id = 0; id < pieces.size(); ++id) {
    if (pieces[id].type != PieceType::kByte) continue;
    for (std::size_t byte = 0; byte < ids.size(); ++byte) {
      if (pieces[id].text != fmt::format("<0x{:02X}>", byte)) continue;
      ids[byte] = static_cast<int32_t>(id);
      ++found;
    }
  }
  return found == ids.size() ? std::optional(ids) : std::nullopt;
}

std::optional<SentencePieceFile> read_sentencepiece_file(std::string_view content) {
  SentencePieceFile file;
  bool good = true;
  const bool whole = for_each_field(content, [&](const Field& field) {
    if (field.number == 1) good &= read_piece(field.bytes, file.pieces.emplace_back());
    if (field.number == 2) good &= read_trainer(field.bytes, file);
    if (field.number == 3) good &= read_normalizer(field.bytes, file);
  });
  return whole && good ? std::optional(std::move(file)) : std::nullopt;
}

}  // namespace farstep
