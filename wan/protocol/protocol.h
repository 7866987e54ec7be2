// The messages between the coordinator and the sites, as bytes. A message is one JSON object in one
// frame: {"protocol": 16, "type": "arrive", ...the fields of the message...}.
// docs/internals/protocol.md lists which message answers which.
//
// A message with an unknown type, an unknown member or another protocol version is refused. Pure
// functions; thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "wan/protocol/coordinator_messages.h"
#include "wan/protocol/site_messages.h"

namespace farstep::wan {

inline constexpr int64_t kProtocolVersion = 19;

// Returns the frame of a message. Replaces bytes that are not UTF-8.
std::string encode(const SiteMessage& message);
std::string encode(const CoordinatorMessage& message);

// Return the message of a frame. Throw DataError if it is not a message of Farstep, and ConfigError
// if it has another protocol version, an unknown type or wrong members.
SiteMessage decode_site_message(const std::string& frame);
CoordinatorMessage decode_coordinator_message(const std::string& frame);

// Whether `answer` completes `request`.
bool answers(const CoordinatorMessage& answer, const SiteMessage& request);
// Whether it is what each copy of a registration gets: one that completes it, or that lets the site
// ask on.
bool answers_registration(const CoordinatorMessage& message);

// Convert bytes to lower-case hexadecimal digits and back; throw DataError for other text.
std::string to_hex(std::string_view bytes);
std::string from_hex(std::string_view digits);

}  // namespace farstep::wan
