// Base64 of RFC 4648, with padding, as a tokenizer.json has its tables.
//
// Pure functions; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace farstep {

std::string base64_text(std::string_view bytes);
// Returns nullopt for text that is none.
std::optional<std::string> base64_bytes(std::string_view text);

}  // namespace farstep
