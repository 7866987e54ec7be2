// How a site's part of a run ended.
#pragma once

#include <array>
#include <span>
#include <string_view>

namespace farstep {

enum class Outcome { kDone, kInterrupted, kPeerLost, kFailed };
inline std::span<const std::string_view> enum_names(Outcome) {
  static constexpr std::array<std::string_view, 4> kNames{"done", "interrupted", "peer_lost",
                                                          "failed"};
  return kNames;
}

}  // namespace farstep
