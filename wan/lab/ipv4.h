// As much of IPv4 as a router between a few sites needs. Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace farstep {

// The destination of an IPv4 packet, in host order; nothing if `packet` is not a whole one (IPv6, a
// header that is cut off, a length that is not the packet's).
std::optional<uint32_t> ipv4_destination(std::span<const std::byte> packet);

// The address of a /24 network such as "10.77.0.0", in host order. Throws ConfigError on any other
// text.
uint32_t parse_subnet(const std::string& text);

// "10.77.0.1" of an address in host order.
std::string ipv4_text(uint32_t address);

}  // namespace farstep
