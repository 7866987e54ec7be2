// Characters that are younger than the Unicode tables of the regular expressions here.
//
// PCRE2 10.42, which Debian 12 and Ubuntu 24.04 have, knows Unicode 14. Hugging Face's tokenizers
// know Unicode 16. Pure functions; thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace farstep {

// Returns the valid UTF-8 `text` with each character that came after Unicode 14 replaced by an
// older one of its category, of as many bytes. Returns `text` itself if there is none; otherwise
// the result lies in `buffer`. So places in the result are places in the text.
std::string_view with_known_characters(std::string_view text, std::string& buffer);

}  // namespace farstep
