#include "wan/sockets/random_token.h"

#include <fmt/format.h>

#include <random>

namespace farstep::wan {

std::string random_token() {
  std::random_device random;  // the system's, 32 bits a call
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

}  // namespace farstep::wan
