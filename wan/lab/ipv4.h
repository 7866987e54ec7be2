// The part of IPv4 that a router between a few sites needs. Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace farstep::wan {

// Returns the destination of an IPv4 packet, in host order. Returns nullopt if `packet` is not a
// complete one: IPv6, a truncated header, or a wrong length.
std::optional<uint32_t> ipv4_destination(std::span<const std::byte> packet);

// Parses the address of a /24 network such as "10.77.0.0"; returns it in host order. Throws
// ConfigError on any other text.
uint32_t parse_subnet(const std::string& text);

// Returns the text, such as "10.77.0.1", of an address in host order.
std::string ipv4_text(uint32_t address);

}  // namespace farstep::wan
