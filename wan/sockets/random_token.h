// A text that no other process has or guesses: it distinguishes a peer from another machine that
// answers at its address.
#pragma once

#include <string>

namespace farstep::wan {

// Returns 128 random bits as 32 hexadecimal digits. Thread-safe.
std::string random_token();

}  // namespace farstep::wan
