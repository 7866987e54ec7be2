// The option --resume of `farstep train` and `farstep launch`.
#pragma once

#include <optional>

#include "trainer/commands/command_line.h"
#include "wan/protocol/protocol.h"

namespace farstep {

inline constexpr const char* kResumeDoc =
    "go on from the newest round that all sites have a checkpoint of; --resume=auto begins anew if "
    "no site has one, and ends at once where the site has the last round";

// --resume alone.
template <>
inline constexpr std::optional<wan::Resume> kValueWithoutText<wan::Resume> = wan::Resume::kAlways;

}  // namespace farstep
