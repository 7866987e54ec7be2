// Who may read the page. Without a token only browsers and programs of this machine; with one,
// whoever knows it. Pure functions; thread-safe.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "trainer/watch/http_server.h"

namespace farstep {

// Returns the token in a file: letters, digits, '-' and '_', 16 to 200 of them, and an end of line.
// Throws ConfigError if it is not one, DataError if the file cannot be read.
std::string read_token(const std::filesystem::path& file);

// Returns the answer to a request that may not read; nullopt if it may. Without a `token` it must
// name this machine as its host, so that a page of another site cannot read by a name that it makes
// point here. With a token it must have it: as "Authorization: Bearer TOKEN", or as a cookie, which
// "/?token=TOKEN" sets.
std::optional<HttpResponse> refusal(const HttpRequest& request, const std::string& token);

}  // namespace farstep
