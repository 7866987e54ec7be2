#include "wan/secure/openssl_handles.h"

#include <openssl/err.h>

#include "trainer/base/error.h"

namespace farstep::wan {

std::string take_openssl_errors() {
  std::string text;
  // The queue belongs to the thread. It is emptied, as the next failure would report old reasons
  // too.
  while (const auto code = ERR_get_error()) {
    const char* reason = ERR_reason_error_string(code);
    if (!text.empty()) text += "; ";
    text += reason != nullptr ? std::string(reason) : fmt::format("error {:x}", code);
  }
  return text.empty() ? "no reason given" : text;
}

void check_openssl(bool succeeded, const char* what) {
  if (!succeeded) throw InternalError(fmt::format("OpenSSL: {}: {}", what, take_openssl_errors()));
}

}  // namespace farstep::wan
