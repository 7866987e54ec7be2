#include "wan/transport/gloo/gloo_release.h"

namespace farstep::wan {

// Since May 2023 a device listens at one port for all of its pairs, and who connects says first
// which pair it means. Before, each pair had a port, and nothing came first. All releases call
// themselves 0.5.0.
std::string_view gloo_release() {
#if __has_include(<gloo/transport/tcp/listener.h>)
  return "of May 2023 or later";
#else
  return "of before May 2023";
#endif
}

}  // namespace farstep::wan
