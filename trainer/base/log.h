// Set-up of the process's one logger (spdlog's default logger). Logs go to stderr, so that stdout
// carries results only. Everyone else just includes <spdlog/spdlog.h>. Thread-safe after set-up.
#pragma once

#include <filesystem>
#include <string>

namespace farstep {

// Sends the log to stderr, each line prefixed with `label` (a site's name, or empty), at `level`
// (trace, debug, info, warning, error, off). Throws ConfigError on an unknown level.
void set_up_log(const std::string& label, const std::string& level = "info");

// Also appends the log, from now on, to `file`. Throws DataError if it cannot be opened.
void log_to_file(const std::filesystem::path& file);

}  // namespace farstep
