// The option --resume of `farstep train` and `farstep launch`.
#pragma once

#include "wan/protocol/protocol.h"

namespace farstep {

inline constexpr const char* kResumeDoc =
    "go on from the newest round that all sites have a checkpoint of; --resume=auto begins anew if "
    "no site has one, and ends at once where the site has the last round";

// --resume alone (see command_line.h).
inline wan::Resume value_without_text(wan::Resume /*type*/) {
  return wan::Resume::kAlways;
}

}  // namespace farstep
