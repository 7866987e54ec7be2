// Few messages of one shape are written, so there is no protocol compiler: a field is its number
// and wire type, then its value.
#include "trainer/series/tensorboard.h"

#include <array>
#include <bit>
#include <cstring>

#include "trainer/base/system/file.h"

namespace farstep {

namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

enum Wire : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

template <typename T>
std::string fixed(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string key(uint32_t field, Wire wire) {
  return varint(field << 3 | wire);
}

std::string bytes_field(uint32_t field, std::string_view bytes) {
  return key(field, kBytes) + varint(bytes.size()) + std::string(bytes);
}

// TFRecord masks its checksums, so that a checksum of data that has one is no trivial value.
std::string masked_crc(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return fixed<uint32_t>(std::rotr(crc, 15) + 0xa282ead8u);
}

std::string record(const std::string& event) {
  const auto length = fixed<uint64_t>(event.size());
  return length + masked_crc(length) + event + masked_crc(event);
}

std::string event_of(double time, const std::string& rest) {
  return key(1, kFixed64) + fixed(time) + rest;
}

// Event{wall_time, step, summary{value{tag, simple_value}}}.
std::string scalar(const std::string& name, const SeriesPoint& point) {
  const auto value =
      bytes_field(1, name) + key(2, kFixed32) + fixed(static_cast<float>(point.value));
  return event_of(point.time, key(2, kVarint) + varint(static_cast<uint64_t>(point.place)) +
                                  bytes_field(5, bytes_field(1, value)));
}

// A name is a folder's, and must not lead elsewhere.
std::string folder_name(std::string owner) {
  for (auto& c : owner) {
    if (c == '/' || c == '\0') c = '_';
  }
  return owner == "." || owner == ".." || owner.empty() ? "_" + owner : owner;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static const auto kTable = [] {
    std::array<uint32_t, 256> table{};
    for (uint32_t i = 0; i < table.size(); ++i) {
      uint32_t crc = i;
      for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
      table[i] = crc;
    }
    return table;
  }();
  uint32_t crc = ~0u;
  for (const char c : bytes) crc = crc >> 8 ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  return ~crc;
}

std::string tensorboard_events(std::span<const Series> series) {
  const double begin =
      series.empty() || series.front().points.empty() ? 0 : series.front().points.front().time;
  std::string file = record(event_of(begin, bytes_field(3, "brain.Event:2")));
  for (const auto& one : series) {
    for (const auto& point : one.points) file += record(scalar(one.name, point));
  }
  return file;
}

// All series of one owner stand together.
void write_tensorboard(std::span<const Series> series, const std::filesystem::path& folder) {
  for (std::size_t begin = 0; begin < series.size();) {
    std::size_t end = begin;
    while (end < series.size() && series[end].owner == series[begin].owner) ++end;
    const auto place = folder / folder_name(series[begin].owner);
    make_folder(place);
    write_file_durably(place / "events.out.tfevents.farstep",
                       tensorboard_events(series.subspan(begin, end - begin)));
    begin = end;
  }
}

}  // namespace farstep
