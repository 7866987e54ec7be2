// The name that somebody meant who typed another one: of a field, an option or a command.
//
// Pure functions; thread-safe.
#pragma once

#include <span>
#include <string>

namespace farstep {

// Returns "; did you mean 'NAME'?" with the name of `known` that is most similar to `typed`, or
// that `typed` shortens; empty if there is none.
std::string did_you_mean(const std::string& typed, std::span<const std::string> known);

}  // namespace farstep
