// How this program's Gloo makes connections, which its releases do in two ways. Sites whose Gloo
// differ in that cannot connect: each takes the other's first bytes for its own kind.
#pragma once

#include <string_view>

namespace farstep::wan {

// Returns which releases of Gloo connect as this one does, in words that are equal at sites that
// can connect.
std::string_view gloo_release();

}  // namespace farstep::wan
