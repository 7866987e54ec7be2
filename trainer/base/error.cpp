#include "trainer/base/error.h"

namespace farstep::detail {

void throw_check_failed(const char* file, int line, const char* condition,
                        const std::string& message) {
  throw InternalError(fmt::format("{}:{}: check failed: {}: {}", file, line, condition, message));
}

}  // namespace farstep::detail
