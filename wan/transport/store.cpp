#include "wan/transport/store.h"

#include <fmt/format.h>

#include "trainer/base/error.h"

namespace farstep::wan {

void wait_until_all_know(Store& store, const std::string& key, int self, int size) {
  const auto key_of = [&](int site) { return fmt::format("{}/{}", key, site); };
  try {
    store.put(key_of(self), "");
    for (int site = 0; site < size; ++site) store.get(key_of(site));
  } catch (const PeerError&) {
    // The store has gone, or a site that failed otherwise. This site knows what it needs.
  }
}

}  // namespace farstep::wan
