// Sets up the process's one logger (spdlog's default logger). The log goes to stderr, so that
// stdout has results only. All other code includes <spdlog/spdlog.h>. Thread-safe after set-up.
//
// What a line quotes may be another's: control characters appear as \xNN, and what follows a line
// end is indented.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace farstep {

// Writes the log to stderr at `level` (trace, debug, info, warning, error, off). Each line begins
// with `label`, a site's name or empty. Throws ConfigError for an unknown level.
void set_up_log(const std::string& label, const std::string& level = "info");

// Also appends the log to `file` from now on, and no longer to the one of an earlier call. Called
// while no other thread logs. Throws DataError if the file cannot be opened.
void log_to_file(const std::filesystem::path& file);

// Writes a line to stderr as the log does at level info, and not to the file. Thread-safe, also
// during log_to_file().
void log_to_console(const std::string& line);

// Lets `clear` run before each line that goes to stderr, so that it can take away a progress bar;
// an empty function ends that. `clear` must not log. When it returns, no `clear` of before runs.
void clear_before_log(std::function<void()> clear);

}  // namespace farstep
