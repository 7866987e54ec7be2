// The options --resume and --from-round of `farstep train` and `farstep launch`.
#pragma once

#include <cstdint>
#include <optional>

#include "trainer/base/error.h"
#include "trainer/commands/command_line.h"
#include "wan/protocol/protocol.h"

namespace farstep {

inline constexpr const char* kResumeDoc =
    "go on from the newest round that all sites have a checkpoint of; --resume=auto begins anew if "
    "no site has one, and ends at once where the site has the last round";

inline constexpr const char* kFromRoundDoc =
    "with --resume, at all sites: go on from the checkpoint after so many rounds; those of later "
    "rounds are renamed to NAME.left";

// --resume alone.
template <>
inline constexpr std::optional<wan::Resume> kValueWithoutText<wan::Resume> = wan::Resume::kAlways;

// Throws ConfigError for a round without --resume.
inline void require_resume(wan::Resume resume, const std::optional<int64_t>& from_round) {
  if (!from_round || resume == wan::Resume::kAlways) return;
  throw ConfigError("--from-round: only with --resume, which goes on from a checkpoint");
}

}  // namespace farstep
