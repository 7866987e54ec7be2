// A link that changes nothing, or a loss that costs nothing, is a mistake in the config and not a
// fast line.
#include "wan/link/emulated_link.h"

namespace farstep::wan {

void EmulatedLink::validate(const JsonPath& path) const {
  if (!rate_bits_per_second && delay_seconds == 0) {
    path.fail("must have rate_bits_per_second or delay_seconds, or be null");
  }
  if (loss > 0 && delay_seconds == 0) {
    path.member("loss").fail("needs delay_seconds: a lost packet costs a round trip");
  }
}

}  // namespace farstep::wan
