#include "wan/transport/relay.h"

#include <fmt/format.h>

namespace farstep::wan {

// Outside 127.0.0.0/16, where most programs listen.
std::string loopback_ip(int number) {
  const int place = number + 1;
  return fmt::format("127.77.{}.{}", place / 256 % 256, place % 256);
}

}  // namespace farstep::wan
