// The lab reads two fields of a packet, its length and its destination. The rest is the business of
// the sites' TCP.
#include "wan/lab/ipv4.h"

#include <arpa/inet.h>

#include "trainer/base/error.h"

namespace farstep::wan {

namespace {

constexpr std::size_t kHeaderBytes = 20;  // without options
constexpr std::size_t kLengthOffset = 2;
constexpr std::size_t kDestinationOffset = 16;

// The `count` bytes at `offset`, most significant first.
uint32_t big_endian(std::span<const std::byte> bytes, std::size_t offset, std::size_t count) {
  uint32_t value = 0;
  for (const auto byte : bytes.subspan(offset, count)) {
    value = value << 8 | std::to_integer<uint32_t>(byte);
  }
  return value;
}

}  // namespace

std::optional<uint32_t> ipv4_destination(std::span<const std::byte> packet) {
  if (packet.size() < kHeaderBytes) return std::nullopt;
  const auto first = std::to_integer<uint32_t>(packet[0]);
  // The low half of the first byte counts words of four bytes, the high half is the version.
  const std::size_t header_bytes = 4 * (first & 15);
  const bool is_whole = first >> 4 == 4 && header_bytes >= kHeaderBytes &&
                        header_bytes <= packet.size() &&
                        big_endian(packet, kLengthOffset, 2) == packet.size();
  if (!is_whole) return std::nullopt;
  return big_endian(packet, kDestinationOffset, 4);
}

uint32_t parse_subnet(const std::string& text) {
  in_addr address{};
  if (inet_pton(AF_INET, text.c_str(), &address) != 1 || (ntohl(address.s_addr) & 255) != 0) {
    throw ConfigError(
        fmt::format("subnet: \"{}\" is not the address of a /24 network such as 10.77.0.0", text));
  }
  return ntohl(address.s_addr);
}

std::string ipv4_text(uint32_t address) {
  const in_addr network_order{.s_addr = htonl(address)};
  char text[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, &network_order, text, sizeof(text));
  return text;
}

}  // namespace farstep::wan
