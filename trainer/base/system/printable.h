// Text of others in a form that a message or a log line can quote. Pure; thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace farstep {

// Returns `text` with every byte that is no printable ASCII as \xNN, cut to `most` characters.
std::string printable(std::string_view text, std::size_t most);

}  // namespace farstep
