// Text of others in a form that a message, a table or a log line can quote. Pure; thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace farstep {

// Returns `text` with every byte that is no printable ASCII as \xNN, cut to `most` characters.
std::string printable(std::string_view text, std::size_t most);

// Returns `text` as one line that a terminal only shows: line ends are spaces; other control
// characters, marks that change the direction of writing and bytes that are no UTF-8 are \xNN. Cuts
// it to `most` bytes.
std::string one_line(std::string_view text, std::size_t most = std::string_view::npos);

// Returns whether one_line() leaves `text` as it is.
bool is_one_line(std::string_view text);

// Returns each line of `text` by one_line(), with `indent` before each but the first.
std::string safe_lines(std::string_view text, std::string_view indent = "");

}  // namespace farstep
