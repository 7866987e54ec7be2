// Sets up the process's one logger (spdlog's default logger). The log goes to stderr, so that
// stdout has results only. All other code includes <spdlog/spdlog.h>. Thread-safe after set-up.
#pragma once

#include <filesystem>
#include <string>

namespace farstep {

// Writes the log to stderr at `level` (trace, debug, info, warning, error, off). Each line begins
// with `label`, a site's name or empty. Throws ConfigError for an unknown level.
void set_up_log(const std::string& label, const std::string& level = "info");

// Also appends the log to `file` from now on, and no longer to the one of an earlier call. Called
// while no other thread logs. Throws DataError if the file cannot be opened.
void log_to_file(const std::filesystem::path& file);

}  // namespace farstep
