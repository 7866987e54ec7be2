// Makes IPv4 packets for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace farstep::wan {

// A packet of `bytes` (20 at least) to `destination` (host order), its payload filled with `fill`.
inline std::vector<std::byte> ipv4_packet(uint32_t destination, std::size_t bytes, int fill = 0) {
  std::vector<std::byte> packet(bytes, static_cast<std::byte>(fill));
  packet[0] = std::byte{0x45};
  packet[2] = static_cast<std::byte>(bytes >> 8);
  packet[3] = static_cast<std::byte>(bytes);
  for (int i = 0; i < 4; ++i) packet[16 + i] = static_cast<std::byte>(destination >> (24 - 8 * i));
  return packet;
}

}  // namespace farstep::wan
